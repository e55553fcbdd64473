// defines: AdamW, Adam with decoupled weight decay.
#pragma once

#include <vector>

#include "optim/adam_moments.h"
#include "optim/optimizer.h"

namespace basin {

struct AdamWOptions : MomentOptions {};
void bind_options(OptionTable& table, AdamWOptions& options);

/// w -= lr (r + wd w), with r Adam's bias-corrected direction (optim/adam_moments.h). Loshchilov & Hutter
/// 2019 (arXiv 1711.05101), algorithm 2, with the schedule's factor inside lr, as in torch.
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<ParameterInfo> parameters, const AdamWOptions& options);
  /// sqrt of the corrected second moment + eps.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& gradients) const override;
  double stability_limit() const override { return moments_.stability_limit(); }

 private:
  void update_parameter(size_t i, const at::Tensor& gradient) override;
  AdamMoments moments_;
  std::vector<double> decay_;
};

}  // namespace basin
