#include "optim/adam_moments.h"

namespace basin {

void bind_moment_options(OptionTable& table, MomentOptions& options, const std::string& weight_decay_help) {
  table.add("beta1", options.beta1, half_open(0, 1), "decay of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment");
  table.add("eps", options.eps, at_least(0), "added to the root of the corrected second moment");
  table.add("weight_decay", options.weight_decay, at_least(0), weight_decay_help);
  table.add("exclude_from_decay", options.exclude_from_decay, parameter_kinds(),
            "parameter kinds without weight decay");
}

at::Tensor AdamMoments::direction(at::Tensor& m, at::Tensor& v, const at::Tensor& gradient, int64_t t) const {
  m.lerp_(gradient, 1 - beta1);
  v.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  // The corrections moved into the denominator, as two numbers instead of two passes.
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(t));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(t));
  at::Tensor denominator = v.sqrt().mul_(correction1 / std::sqrt(correction2));
  if (eps > 0) denominator.add_(eps * correction1);
  at::Tensor r = at::div_out(denominator, m, denominator);
  if (eps == 0) r.masked_fill_(m.eq(0), 0);
  return r;
}

at::Tensor AdamMoments::denominator(const at::Tensor& v, int64_t t) const {
  const double correction = 1 - std::pow(beta2, static_cast<double>(t));
  return v.to(at::kDouble).div(correction).sqrt_().add_(eps);
}

}  // namespace basin
