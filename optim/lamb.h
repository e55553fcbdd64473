// defines: Lamb, layer-wise adaptive moments, with the axes on which implementations differ; LAMBC.
#pragma once

#include <string>
#include <vector>

#include "core/presets.h"
#include "optim/moment_optimizer.h"
#include "optim/trust_arm.h"

namespace basin {

/// The initial values are preset "basin".
struct LambOptions : MomentOptions, WithPreset {
  LambOptions();
  std::string bias_correction = "moments";  // moments | none | rate | rate_first
  std::string decay = "update";             // update | decoupled | decoupled_before | gradient
  double min_weight_norm = 0;               // phi; 0: none
  double max_weight_norm = 0;               // phi; 0: none
  bool eps_in_ratio = false;                // eps in the ratio's denominator too
  double max_ratio = 0;                     // 0: none
  double max_gradient_norm = 0;             // 0: none
  double clip_eps = 0;
  bool normalise_gradient = false;
  Exclusions exclude_from_trust = default_exclusions();
  TrustArm arm;  // of no preset
};
void bind_options(OptionTable& table, LambOptions& options);

/// The same, from preset "timm_clip".
struct LambcOptions : LambOptions {
  LambcOptions();
};
void bind_options(OptionTable& table, LambcOptions& options);

/// basin, paper, and what code bases do by default: docs/optimizers.md. The first is the default.
const std::vector<Preset<LambOptions>>& lamb_presets();

/// Preset "paper" is LAMB as in You et al. 2019 (arXiv 1904.00962), algorithm 2, with phi the identity (as the first
/// author says he used):
///   u = r + wd w,  r Adam's bias-corrected direction (optim/moment_optimizer.h)
///   w -= lr |w| / |u| u                                         for each parameter tensor
/// Options: phi(|w|) = |w| held between two norms; a largest ratio (1: LAMBC, Fong et al. 2020); no bias correction, or on
/// the learning rate alone (by sqrt(1 - beta2^t) / (1 - beta1^t), or rate_first by 1 / (1 - beta1^t)), so that the ratio
/// divides by uncorrected moments; decay outside of u (decoupled: w -= lr wd w with the step; decoupled_before: ahead of
/// the norms) or in the gradient; the gradients of all tensors, as one vector, clipped to a norm (by max / (norm + clip_eps))
/// or normalised to 1.
///
/// The paper is silent on three points. Preset "basin", the default, excludes biases and the weights and biases of norms
/// from trust ratios and from weight decay, as most code bases do; "paper" excludes nothing. Where |w| or |u| is 0 the
/// fraction |w|/|u|, |w| clamped, counts as 1, the same for parameters excluded from trust ratios. The reported trust ratio is phi/|u|. A
/// tensor whose norm is close to 0, but not 0, hardly moves.
///
/// With clean gradients (Optimizer::set_clean_gradients) v is theirs, and |u| is of the moments m and v of them alone: the ratio of
/// the step without noise. The direction has the m of the gradients as they are.
class Lamb : public MomentOptimizer {
 public:
  Lamb(std::vector<ParameterInfo> parameters, const LambOptions& options);
  std::string trust_ratio_definition() const override;
  /// Adam's denominator over the trust ratio of the moments as they stand, over the learning rate's
  /// correction and factor and the clip of the gradients given. NaN before the first update.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  /// That of Adam where all trust ratios are given ones.
  double stability_limit() const override;
  double frozen_stability_limit() const override { return 2 * (1 + rule_.beta1) / (1 - rule_.beta1); }

 private:
  std::string arm_;
};

}  // namespace basin
