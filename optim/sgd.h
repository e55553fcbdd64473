// defines: Sgd, stochastic gradient descent with momentum.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double dampening = 0;
  double weight_decay = 0;
  std::vector<std::string> exclude_from_decay = default_exclusions();
};
void bind_options(OptionTable& table, SgdOptions& options);

/// d = g + wd w;  v = momentum v + (1 - dampening) d;  w -= lr v, or with Nesterov w -= lr (d + momentum v).
///
/// Weight decay is the L2 term, so inside the momentum. The learning rate stands outside the buffer. v starts
/// at 0: as torch's, but that torch leaves dampening out of the very first update.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<ParameterInfo> parameters, const SgdOptions& options);
  /// 2 (1 + m) / (1 - d), with Nesterov 2 (1 + m) / (1 + 2 m); m momentum, d dampening.
  double stability_limit() const override;

 private:
  void update_parameter(size_t i, const at::Tensor& gradient) override;
  SgdOptions options_;
  std::vector<double> decay_;
};

}  // namespace basin
