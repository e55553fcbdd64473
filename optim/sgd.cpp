#include "optim/sgd.h"

#include "core/error.h"
#include "optim/registry.h"

namespace basin {

void bind_options(OptionTable& table, SgdOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1),
            "share of the last step that is kept; 0: plain gradient descent");
  table.add("nesterov", options.nesterov, anything(),
            "Nesterov's look-ahead; needs momentum > 0 and dampening = 0");
  table.add("dampening", options.dampening, between(0, 1),
            "the gradient enters the momentum buffer multiplied by 1 - dampening");
  table.add("weight_decay", options.weight_decay, at_least(0), "weight decay coefficient");
  table.add("decay", options.decay, one_of({"gradient", "decoupled"}),
            "gradient: gradient + weight_decay * weight; decoupled: weights shrink by learning rate * "
            "weight_decay");
  bind_exclusion(table, options.exclude_from_decay);
  bind_factors(table, options.lr_factors, options.decay_factors);
}

Sgd::Sgd(std::vector<ParameterInfo> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)) {
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw ConfigError("sgd: nesterov = true violates: it needs momentum > 0 and dampening = 0");
  }
  treatments_ = treatments(parameters_, decay_rules(options));
  rule_.momentum = options.momentum;
  rule_.dampening = options.dampening;
  rule_.nesterov = options.nesterov;
  rule_.decoupled = options.decay == "decoupled";
  if (options.momentum > 0) add_slot("momentum");
}

double Sgd::stability_limit() const {
  const double m = rule_.momentum;
  if (m == 0) return 2;  // dampening is part of the buffer
  return 2 * (1 + m) / (rule_.nesterov ? 1 + 2 * m : 1 - rule_.dampening);
}

void Sgd::update(TensorLists& lists) {
  if (rule_.momentum > 0) lists.first = slot(0);
  report(
      momentum_step(rule_, {.rate = learning_rate(), .norms = takes_norms()}, treatments_, lists, tables_));
}

OptimizerEntry sgd_entry() {
  return optimizer_entry<Sgd, SgdOptions>(
      {"sgd", "SGD", "Gradient descent with momentum or Nesterov momentum.", {"momentum=0"}},
      [](const SgdOptions& o) {
        return OptimizerTraits{.steps_along_gradients = true, .momentum = o.momentum};
      });
}

}  // namespace basin
