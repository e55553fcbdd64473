// defines: Lars, layer-wise adaptive rate scaling, with the axes on which implementations differ; LARC.
#pragma once

#include <string>
#include <vector>

#include "core/presets.h"
#include "optim/exclusion.h"
#include "optim/optimizer.h"
#include "optim/trust_arm.h"

namespace basin {

/// The initial values are preset "basin".
struct LarsOptions : WithPreset {
  LarsOptions();
  double trust_coefficient = 0.001;
  bool less_momentum = false;  // the coefficient times 1 - momentum
  double momentum = 0.9;
  bool moving_average = false;                      // what enters the buffer times 1 - momentum
  double weight_decay = 5e-4;                       // the paper's for AlexNet; 1e-4 to 2e-4 for ResNet-50
  std::string decay = "gradient";                   // gradient | decoupled
  std::string denominator = "gradient_plus_decay";  // ... | decayed_gradient | decayed_gradient_plus_decay |
                                                    // gradient | momentum
  double eps = 0;                                   // in the denominator; 0 stays 0
  std::string rate_in = "buffer";                   // buffer | step
  std::string ratio_in = "buffer";                  // buffer | step
  double max_ratio = 0;                             // 0: none
  bool clip = false;                                // LARC: min(ratio / learning rate, 1)
  double max_element = 0;                           // of the gradient with its decay; 0: none
  std::string without_ratio = "coefficient";        // coefficient | one
  std::string zero_norm = "denominator";            // denominator | any
  bool zero_norm_drops_decay = false;
  std::string buffer_start = "zero";  // zero | gradient
  Exclusions exclude_from_decay = default_exclusions();
  Exclusions exclude_from_trust = default_exclusions();
  Factors lr_factors, decay_factors;  // of no preset
  TrustArm arm;                       // of no preset
};
void bind_options(OptionTable& table, LarsOptions& options);

/// The same, from preset "apex".
struct LarcOptions : LarsOptions {
  LarcOptions();
};
void bind_options(OptionTable& table, LarcOptions& options);

/// basin, paper, and what code bases do by default: docs/optimizers.md. The first is the default.
const std::vector<Preset<LarsOptions>>& lars_presets();

/// LARS as in You et al. 2017 (arXiv 1708.03888), algorithm 1, is preset "paper":
///   ratio = trust_coefficient |w| / (|g| + wd |w|)            for each parameter tensor
///   v = momentum v + lr ratio (g + wd w);   w -= v
/// Learning rate and trust ratio stand inside the momentum buffer, so a change of either acts on new gradients alone.
/// Options move either out of it (rate_in, ratio_in: w -= lr ratio v), and the ratio's denominator to
///   decayed_gradient |g + wd w| · decayed_gradient_plus_decay |g + wd w| + wd |w| · gradient |g| · momentum |v|,
/// each plus eps. At a constant learning rate rate_in is without effect.
///
/// The paper is silent on three points. Preset "basin", the default, excludes biases and the weights and biases of norms
/// from trust ratios and from weight decay, as most code bases do; "paper" excludes nothing. Where |w| or the denominator
/// is 0 (zero_norm = "any": or the gradient), and for excluded parameters, the fraction |w|/(...) counts as 1, so the ratio
/// is trust_coefficient; without_ratio = "one" makes it 1, as code bases have it, a thousand times more. The reported trust
/// ratio is the whole factor on top of the learning rate. A tensor whose norm is close to 0, but not 0, hardly moves: its
/// ratio is proportional to |w|.
///
/// With clean gradients (Optimizer::set_clean_gradients) every norm in the denominator is of them; for `momentum` of a buffer of them.
/// What enters the other buffer, max_element included, is of the gradients as they are.
class Lars : public Optimizer {
 public:
  Lars(std::vector<ParameterInfo> parameters, const LarsOptions& options);
  std::string trust_ratio_definition() const override;
  /// 1 / (trust ratio, rate factor) of each tensor, the ratio from the gradient given, not from the buffer.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  /// That of SGD where all trust ratios are given ones: P doesn't move then.
  double stability_limit() const override;
  double frozen_stability_limit() const override;
  double gain() const override { return rule_.gain(); }
  bool takes_clean_gradients() const override { return true; }

 private:
  void update(TensorLists& lists) override;
  MomentumRule rule_;
  std::string arm_;
  bool starts_with_gradient_;
};

}  // namespace basin
