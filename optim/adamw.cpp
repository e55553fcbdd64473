#include "optim/adamw.h"

#include "optim/norm.h"

namespace basin {

void bind_options(OptionTable& table, AdamWOptions& options) {
  table.add("beta1", options.beta1, half_open(0, 1), "decay of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment");
  table.add("eps", options.eps, at_least(0), "added to the root of the corrected second moment");
  table.add("weight_decay", options.weight_decay, at_least(0),
            "decoupled: the update gets lr * weight_decay * weight");
  table.add("exclude_from_decay", options.exclude_from_decay, parameter_kinds(),
            "parameter kinds without weight decay");
}

AdamW::AdamW(std::vector<ParameterInfo> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters)),
      moments_{options.beta1, options.beta2, options.eps},
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)) {
  add_slot("first_moment");
  add_slot("second_moment");
}

void AdamW::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  at::Tensor update = moments_.direction(slot(0, i), slot(1, i), gradient, updates_done() + 1);
  if (decay_[i] > 0) update.add_(w, decay_[i]);
  last_step_[i].update_norm = std::abs(learning_rate()) * norm_of(update);
  w.add_(update, -learning_rate());
}

}  // namespace basin
