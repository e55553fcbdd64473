#include "optim/lars.h"

#include "core/tensor_norms.h"

namespace basin {

void bind_options(OptionTable& table, LarsOptions& options) {
  table.add("trust_coefficient", options.trust_coefficient, greater_than(0), "eta of the paper");
  table.add("momentum", options.momentum, half_open(0, 1), "share of the last step kept");
  table.add("weight_decay", options.weight_decay, at_least(0),
            "beta of the paper, in gradient and denominator");
  table.add("eps", options.eps, at_least(0), "added to the trust ratio's denominator; 0 in the paper");
  table.add("exclude_from_decay", options.exclude_from_decay, parameter_kinds(),
            "parameter kinds without weight decay");
  table.add("exclude_from_trust", options.exclude_from_trust, parameter_kinds(),
            "parameter kinds whose local rate is trust_coefficient; [] for the paper to the letter");
}

Lars::Lars(std::vector<ParameterInfo> parameters, const LarsOptions& options)
    : Optimizer(std::move(parameters)),
      options_(options),
      decay_(decay_by_parameter(parameters_, options.weight_decay, options.exclude_from_decay)),
      no_trust_(excluded_parameters(parameters_, options.exclude_from_trust)) {
  add_slot("momentum");
}

std::string Lars::trust_ratio_definition() const {
  return "local rate trust_coefficient |w| / (|g| + weight_decay |w| + eps) of each tensor, "
         "trust_coefficient "
         "where |w| or the denominator is 0: factor beside the learning rate on the new gradient as it "
         "enters "
         "the momentum buffer, not on the step; NaN where excluded";
}

double Lars::local_rate(size_t i, double weight_norm, double gradient_norm) const {
  const double denominator = gradient_norm + decay_[i] * weight_norm + options_.eps;
  const bool fraction = !no_trust_[i] && weight_norm != 0 && denominator != 0;
  return options_.trust_coefficient * (fraction ? weight_norm / denominator : 1);
}

std::vector<at::Tensor> Lars::preconditioner(const std::vector<at::Tensor>& gradients) const {
  std::vector<at::Tensor> p = Optimizer::preconditioner(gradients);
  for (size_t i = 0; i < p.size(); ++i)
    p[i].div_(local_rate(i, norm_of(parameters_[i].tensor.detach()), norm_of(gradients[i])));
  return p;
}

void Lars::update_parameter(size_t i, const at::Tensor& gradient) {
  const at::Tensor& w = parameters_[i].tensor;
  ParameterStep& step = last_step_[i];
  const double ratio = local_rate(i, step.weight_norm, step.gradient_norm);
  if (!no_trust_[i]) step.trust_ratio = ratio;
  const double rate = learning_rate() * ratio;
  at::Tensor& v = slot(0, i);
  add_scaled(v.mul_(options_.momentum), gradient, rate);
  if (decay_[i] > 0) add_scaled(v, w, rate * decay_[i]);
  step.update_norm = norm_of(v);
  w.sub_(v);
}

}  // namespace basin
