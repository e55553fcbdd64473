#include "optim/sgd.h"

#include "core/error.h"
#include "core/tensor_norms.h"

namespace basin {

void bind_options(OptionTable& table, SgdOptions& options) {
  table.add("momentum", options.momentum, half_open(0, 1),
            "share of the last step kept; 0: plain gradient descent");
  table.add("nesterov", options.nesterov, anything(),
            "Nesterov's look-ahead; needs momentum > 0 and dampening = 0");
  table.add("dampening", options.dampening, between(0, 1),
            "the gradient enters the momentum times 1 - dampening");
  table.add("weight_decay", options.weight_decay, at_least(0),
            "L2 coefficient: gradient + weight_decay * weight");
  table.add("exclude_from_decay", options.exclude_from_decay, parameter_kinds(),
            "parameter kinds without weight decay");
}

Sgd::Sgd(std::vector<ParameterInfo> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)),
      options_(options),
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)) {
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw ConfigError("sgd: nesterov = true violates: it needs momentum > 0 and dampening = 0");
  }
  if (options.momentum > 0) add_slot("momentum");
}

double Sgd::stability_limit() const {
  const double m = options_.momentum;
  if (m == 0) return 2;  // dampening is part of the buffer
  return 2 * (1 + m) / (options_.nesterov ? 1 + 2 * m : 1 - options_.dampening);
}

void Sgd::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  at::Tensor d = decay_[i] > 0 ? gradient.add(w, decay_[i]) : gradient;
  if (options_.momentum > 0) {
    at::Tensor& v = slot(0, i);
    v.mul_(options_.momentum).add_(d, 1 - options_.dampening);
    d = options_.nesterov ? d.add(v, options_.momentum) : v;
  }
  last_step_[i].update_norm = std::abs(learning_rate()) * norm_of(d);
  w.add_(d, -learning_rate());
}

}  // namespace basin
