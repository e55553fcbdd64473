// defines: Lars, layer-wise adaptive rate scaling.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct LarsOptions {
  double trust_coefficient = 0.001;
  double momentum = 0.9;
  double weight_decay = 5e-4;  // the paper's for AlexNet; 1e-4 to 2e-4 for ResNet-50
  double eps = 0;              // in the ratio's denominator; 0 as printed, and it stays 0
  std::vector<std::string> exclude_from_decay = default_exclusions();
  std::vector<std::string> exclude_from_trust = default_exclusions();
};
void bind_options(OptionTable& table, LarsOptions& options);

/// LARS, the formulas as printed in You et al. 2017 (arXiv 1708.03888), algorithm 1:
///   lambda = trust_coefficient |w| / (|g| + wd |w|)            for each parameter tensor
///   v = momentum v + lr lambda (g + wd w);   w -= v
/// Learning rate and trust ratio stand inside the momentum buffer, so a change of either acts on new
/// gradients alone.
///
/// The paper is silent on three points. By default biases and the weights and biases of norms are excluded
/// from trust ratios and from weight decay, as in most code bases (exclude_from_trust, exclude_from_decay; []
/// for both is the algorithm to the letter). Where |w| or the denominator is 0 the fraction |w|/(...) counts
/// as 1, so lambda = trust_coefficient; the same for parameters excluded from trust ratios. The reported
/// trust ratio is lambda. A tensor whose norm is close to 0, but not 0, hardly moves: lambda is proportional
/// to |w|.
class Lars : public Optimizer {
 public:
  Lars(std::vector<ParameterInfo> parameters, const LarsOptions& options);
  std::string trust_ratio_definition() const override;
  /// 1 / local rate of each tensor, from the gradient given.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  double stability_limit() const override { return NAN; }

 private:
  void update_parameter(size_t i, const at::Tensor& gradient) override;
  double local_rate(size_t i, double weight_norm, double gradient_norm) const;
  LarsOptions options_;
  std::vector<double> decay_;
  std::vector<bool> no_trust_;
};

}  // namespace basin
