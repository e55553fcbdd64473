#include "optim/lamb.h"

#include "optim/norm.h"

namespace basin {

void bind_options(OptionTable& table, LambOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1), "decay of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment");
  table.add("eps", options.eps, at_least(0), "added to the root of the corrected second moment");
  table.add("weight_decay", options.weight_decay, at_least(0),
            "lambda of the paper, inside the trust ratio's norm");
  table.add("exclude_from_decay", options.exclude_from_decay, parameter_kinds(),
            "parameter kinds without weight decay");
  table.add("exclude_from_trust", options.exclude_from_trust, parameter_kinds(),
            "parameter kinds with ratio 1");
}

Lamb::Lamb(std::vector<ParameterInfo> parameters, const LambOptions& options)
    : Optimizer(std::move(parameters)),
      moments_{options.beta1, options.beta2, options.eps},
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)),
      no_trust_(excluded_parameters(parameters_, options.exclude_from_trust)) {
  add_slot("first_moment");
  add_slot("second_moment");
}

void Lamb::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  at::Tensor u = moments_.direction(slot(0, i), slot(1, i), gradient, updates_done() + 1);
  if (decay_[i] > 0) u.add_(w, decay_[i]);
  const double direction_norm = norm_of(u);
  ParameterStep& step = last_step_[i];
  double ratio = 1;
  if (!no_trust_[i]) {
    if (step.weight_norm != 0 && direction_norm != 0) ratio = step.weight_norm / direction_norm;
    step.trust_ratio = ratio;
  }
  step.update_norm = std::abs(learning_rate()) * ratio * direction_norm;
  w.add_(u, -learning_rate() * ratio);
}

}  // namespace basin
