// defines: SignDescent, steps by the sign of an averaged gradient: Lion and signSGD.
#pragma once

#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, LionOptions& options);

struct SignSgdOptions {
  double momentum = 0.9;
  double weight_decay = 0;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;
};
void bind_options(OptionTable& table, SignSgdOptions& options);

/// Lion (Chen et al. 2023, arXiv 2302.06675, algorithm 2):
///   w <- w - lr (sign(beta1 m + (1 - beta1) g) + wd w);   m <- beta2 m + (1 - beta2) g.
/// signSGD, with momentum Signum (Bernstein et al. 2018, arXiv 1802.04434, algorithms 1 and 2):
///   m <- momentum m + (1 - momentum) g;   w <- w - lr (sign(m) + wd w).
/// m starts at 0, sign(0) = 0, and the decay is decoupled. Every weight moves by lr, so |change| = lr sqrt(number of weights), whatever
/// the gradients' scale: rates are far smaller than SGD's. Cost: one pass, memory one vector (none where momentum = 0).
///
/// Can go wrong: steps don't shrink with the gradient, so a constant rate ends in a ring of its own size; weights whose gradient is
/// always exactly 0 stay, those with a gradient of rounding errors move as far as all others.
class SignDescent : public Optimizer {
 public:
  SignDescent(std::vector<ParameterInfo> parameters, const LionOptions& options);
  SignDescent(std::vector<ParameterInfo> parameters, const SignSgdOptions& options);
  /// NaN: the diagonal |g| by which sign(g) is a step along P^{-1} g is 0 where g is, and moves with g.
  std::vector<at::Tensor> preconditioner(const std::vector<at::Tensor>& /*gradients*/) const override {
    return no_diagonal();
  }
  double stability_limit() const override { return NAN; }

 private:
  void update(TensorLists& lists) override;
  SignRule rule_;
};

}  // namespace basin
