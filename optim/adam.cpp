#include "optim/adam.h"

#include "optim/registry.h"

namespace basin {

void bind_options(OptionTable& table, AdamOptions& options) {
  bind_moment_options(table, options,
                      "L2 coefficient: the moments are those of gradient + weight_decay * weight");
  bind_factors(table, options.lr_factors, options.decay_factors);
}

void bind_options(OptionTable& table, AdamWOptions& options) {
  bind_moment_options(table, options, "decoupled: each update also subtracts lr * weight_decay * weight");
  bind_factors(table, options.lr_factors, options.decay_factors);
}

Adam::Adam(std::vector<ParameterInfo> parameters, const AdamOptions& options)
    : MomentOptimizer(std::move(parameters), options) {
  rule_.decay = MomentRule::Decay::gradient;
}

Adam::Adam(std::vector<ParameterInfo> parameters, const AdamWOptions& options)
    : MomentOptimizer(std::move(parameters), options) {
  rule_.decay = MomentRule::Decay::decoupled;
}

std::vector<at::Tensor> Adam::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i)
    p.push_back(denominator(i).div_(treatments_[i].rate_factor));
  return p;
}

OptimizerEntry adam_entry() {
  return optimizer_entry<Adam, AdamOptions>(
      {"adam", "Adam", "Adam with weight decay in the gradient.", {"beta1=0"}}, [](const AdamOptions& o) {
        return OptimizerTraits{.squares_in = {kSecondMoment}, .momentum = o.beta1};
      });
}

OptimizerEntry adamw_entry() {
  return optimizer_entry<Adam, AdamWOptions>({"adamw",
                                              "AdamW",
                                              "Adam with decoupled weight decay.",
                                              {"beta1=0", "weight_decay=0"},
                                              {"weight_decay=0"}},
                                             [](const AdamWOptions& o) {
                                               return OptimizerTraits{.squares_in = {kSecondMoment},
                                                                      .momentum = o.beta1};
                                             });
}

}  // namespace basin
