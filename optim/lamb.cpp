#include "optim/lamb.h"

#include "core/tensor_norms.h"

namespace basin {

void bind_options(OptionTable& table, LambOptions& options) {
  bind_moment_options(table, options, "lambda of the paper, inside the trust ratio's norm");
  table.add("exclude_from_trust", options.exclude_from_trust, parameter_kinds(),
            "parameter kinds with ratio 1; [] for the paper to the letter");
}

Lamb::Lamb(std::vector<ParameterInfo> parameters, const LambOptions& options)
    : Optimizer(std::move(parameters)),
      moments_(options),
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)),
      no_trust_(excluded_parameters(parameters_, options.exclude_from_trust)) {
  for (const char* name : kMomentSlots) add_slot(name);
}

std::string Lamb::trust_ratio_definition() const {
  return "|w| / |u| of each tensor, u Adam's direction plus weight decay, 1 where either is 0: factor beside "
         "the learning rate on the whole step, without a coefficient; NaN where excluded";
}

double Lamb::trust_ratio(size_t i, double weight_norm, double direction_norm) const {
  const bool fraction = !no_trust_[i] && weight_norm != 0 && direction_norm != 0;
  return fraction ? weight_norm / direction_norm : 1;
}

std::vector<at::Tensor> Lamb::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  const double correction = 1 - std::pow(moments_.beta1, static_cast<double>(updates_done()));
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor w = parameters_[i].tensor.detach().to(at::kDouble);
    const at::Tensor denominator = moments_.denominator(slot(1, i), updates_done());
    const at::Tensor u = slot(0, i).to(at::kDouble).div(correction).div_(denominator).add_(w, decay_[i]);
    p.push_back(denominator / trust_ratio(i, norm_of(w), norm_of(u)));
  }
  return p;
}

void Lamb::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  at::Tensor u = moments_.direction(slot(0, i), slot(1, i), gradient, updates_done() + 1);
  if (decay_[i] > 0) u.add_(w, decay_[i]);
  const double direction_norm = norm_of(u);
  ParameterStep& step = last_step_[i];
  const double ratio = trust_ratio(i, step.weight_norm, direction_norm);
  if (!no_trust_[i]) step.trust_ratio = ratio;
  step.update_norm = std::abs(learning_rate()) * ratio * direction_norm;
  add_scaled(w, u, -learning_rate() * ratio);
}

}  // namespace basin
