// defines: Adam, with the decay in the gradient (adam) or apart from it (adamw).
#pragma once

#include <string>
#include <vector>

#include "optim/moment_optimizer.h"

namespace basin {

struct AdamOptions : MomentOptions {
  AdamOptions() { weight_decay = 0; }
};
void bind_options(OptionTable& table, AdamOptions& options);

struct AdamWOptions : MomentOptions {};
void bind_options(OptionTable& table, AdamWOptions& options);

/// w -= lr r, with r Adam's bias-corrected direction (optim/moment_optimizer.h) of g + wd w: Kingma & Ba 2015
/// (arXiv 1412.6980), algorithm 1. AdamW: w -= lr (r + wd w), r of g alone: Loshchilov & Hutter 2019
/// (arXiv 1711.05101), algorithm 2, with the schedule's factor inside lr, as in torch.
class Adam : public MomentOptimizer {
 public:
  Adam(std::vector<ParameterInfo> parameters, const AdamOptions& options);
  Adam(std::vector<ParameterInfo> parameters, const AdamWOptions& options);
  /// sqrt of the corrected second moment + eps, over the rate factor.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  /// 2 (1 + beta1) / (1 - beta1): momentum as a moving average of gradients (arXiv 2207.14484, section 3).
  double stability_limit() const override { return 2 * (1 + rule_.beta1) / (1 - rule_.beta1); }
};

}  // namespace basin
