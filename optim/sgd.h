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
  std::string decay = "gradient";  // gradient | decoupled
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, SgdOptions& options);

/// d = g + wd w;  v = momentum v + (1 - dampening) d;  w -= lr v, or with Nesterov w -= lr (d + momentum v).
///
/// Weight decay is the L2 term, so inside the momentum; decay = "decoupled" leaves it out of d and shrinks w by lr wd
/// instead (Loshchilov & Hutter 2019, SGDW, algorithm 1). The learning rate stands outside the buffer. v starts at 0: as
/// torch's, but that torch leaves dampening out of the very first update. Without momentum there is no dampening.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<ParameterInfo> parameters, const SgdOptions& options);
  /// 2 (1 + m) / (1 - dampening), with Nesterov 2 (1 + m) / (1 + 2 m), without momentum 2.
  double stability_limit() const override;
  double gain() const override { return rule_.gain(); }
  /// Nothing of it is normalised.
  bool takes_clean_gradients() const override { return true; }

 private:
  void update(TensorLists& lists) override;
  MomentumRule rule_;
};

}  // namespace basin
