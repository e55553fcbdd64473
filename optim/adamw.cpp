#include "optim/adamw.h"

#include "core/tensor_norms.h"

namespace basin {

void bind_options(OptionTable& table, AdamWOptions& options) {
  bind_moment_options(table, options, "decoupled: the update gets lr * weight_decay * weight");
}

AdamW::AdamW(std::vector<ParameterInfo> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters)),
      moments_(options),
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)) {
  for (const char* name : kMomentSlots) add_slot(name);
}

std::vector<at::Tensor> AdamW::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i)
    p.push_back(moments_.denominator(slot(1, i), updates_done()));
  return p;
}

void AdamW::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  at::Tensor update = moments_.direction(slot(0, i), slot(1, i), gradient, updates_done() + 1);
  if (decay_[i] > 0) update.add_(w, decay_[i]);
  last_step_[i].update_norm = std::abs(learning_rate()) * norm_of(update);
  w.add_(update, -learning_rate());
}

}  // namespace basin
