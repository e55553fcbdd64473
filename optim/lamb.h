// defines: Lamb, layer-wise adaptive moments.
#pragma once

#include <string>
#include <vector>

#include "optim/adam_moments.h"
#include "optim/optimizer.h"

namespace basin {

struct LambOptions : MomentOptions {
  LambOptions() { eps = 1e-6; }
  std::vector<std::string> exclude_from_trust = default_exclusions();
};
void bind_options(OptionTable& table, LambOptions& options);

/// LAMB, the formulas as printed in You et al. 2019 (arXiv 1904.00962), algorithm 2, phi the identity (as the
/// first author says he used):
///   u = r + wd w,  r Adam's bias-corrected direction (optim/adam_moments.h)
///   w -= lr |w| / |u| u                                         for each parameter tensor
/// Nothing clips gradients or the ratio.
///
/// The paper is silent on three points. By default biases and the weights and biases of norms are excluded
/// from trust ratios and from weight decay, as in most code bases (exclude_from_trust, exclude_from_decay; []
/// for both is the algorithm to the letter). Where |w| or |u| is 0 the fraction |w|/|u| counts as 1, the same
/// for parameters excluded from trust ratios. The reported trust ratio is |w|/|u|. A tensor whose norm is
/// close to 0, but not 0, hardly moves.
class Lamb : public Optimizer {
 public:
  Lamb(std::vector<ParameterInfo> parameters, const LambOptions& options);
  std::string trust_ratio_definition() const override;
  /// Adam's denominator over the trust ratio of the moments as they stand.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  double stability_limit() const override { return NAN; }

 private:
  void update_parameter(size_t i, const at::Tensor& gradient) override;
  double trust_ratio(size_t i, double weight_norm, double direction_norm) const;
  AdamMoments moments_;
  std::vector<double> decay_;
  std::vector<bool> no_trust_;
};

}  // namespace basin
