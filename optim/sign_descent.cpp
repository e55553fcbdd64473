#include "optim/sign_descent.h"

#include "optim/registry.h"

namespace basin {

void bind_options(OptionTable& table, LionOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1), "share of the average in what the sign is taken of");
  table.add("beta2", options.beta2, half_open(0, 1), "share of the average that is kept");
  bind_decay(table, options);
}

void bind_options(OptionTable& table, SignSgdOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1),
            "share of the averaged gradient that is kept; 0: the sign of the gradient as it is");
  bind_decay(table, options);
}

SignDescent::SignDescent(std::vector<ParameterInfo> parameters, const LionOptions& options)
    : Optimizer(std::move(parameters)), rule_{.blend = options.beta1, .keep = options.beta2} {
  treatments_ = treatments(parameters_, decay_rules(options));
  add_slot("average");
}

SignDescent::SignDescent(std::vector<ParameterInfo> parameters, const SignSgdOptions& options)
    : Optimizer(std::move(parameters)), rule_{.blend = options.momentum, .keep = options.momentum} {
  treatments_ = treatments(parameters_, decay_rules(options));
  if (options.momentum > 0) add_slot("average");
}

void SignDescent::update(TensorLists& lists) {
  if (rule_.blend > 0 || rule_.keep > 0) lists.first = slot(0);
  report(sign_step(rule_, {.rate = learning_rate(), .norms = takes_norms()}, treatments_, lists, tables_));
}

OptimizerEntry lion_entry() {
  return optimizer_entry<SignDescent, LionOptions>(
      {"lion", "Lion", "Steps by the sign of a blend of gradient and averaged gradient.", {"beta1=0"}},
      [](const LionOptions& o) { return OptimizerTraits{.has_preconditioner = false, .momentum = o.beta2}; });
}

OptimizerEntry signsgd_entry() {
  return optimizer_entry<SignDescent, SignSgdOptions>(
      {"signsgd", "signSGD", "Steps by the sign of the averaged gradient (Signum).", {"momentum=0"}},
      [](const SignSgdOptions& o) {
        return OptimizerTraits{.has_preconditioner = false, .momentum = o.momentum};
      });
}

}  // namespace basin
