#include "optim/moment_optimizer.h"

namespace basin {

void bind_moment_options(OptionTable& table, MomentOptions& options, const std::string& weight_decay_help) {
  table.add("beta1", options.beta1, half_open(0, 1), "decay of the first moment");
  table.add("beta2", options.beta2, half_open(0, 1), "decay of the second moment");
  table.add("eps", options.eps, at_least(0), "added to the root of the corrected second moment");
  table.add("weight_decay", options.weight_decay, at_least(0), weight_decay_help);
  bind_exclusion(table, options.exclude_from_decay);
}

MomentOptimizer::MomentOptimizer(std::vector<ParameterInfo> parameters, const MomentOptions& options,
                                 const Exclusions& without_trust)
    : Optimizer(std::move(parameters)) {
  TreatmentRules rules = decay_rules(options);
  rules.without_trust = without_trust;
  treatments_ = treatments(parameters_, rules);
  rule_.beta1 = options.beta1;
  rule_.beta2 = options.beta2;
  rule_.eps = options.eps;
  add_slot("first_moment");
  add_slot(kSecondMoment);
}

StepScalars MomentOptimizer::scalars(int64_t t) const {
  return {.rate = learning_rate(),
          .correction1 = 1 - std::pow(rule_.beta1, static_cast<double>(t)),
          .correction2 = 1 - std::pow(rule_.beta2, static_cast<double>(t)),
          .norms = takes_norms()};
}

void MomentOptimizer::update(TensorLists& lists) {
  lists.first = slot(0);
  lists.second = slot(1);
  report(moment_step(rule_, scalars(updates_done() + 1), treatments_, lists, tables_));
}

at::Tensor MomentOptimizer::first_moment(size_t i) const {
  const bool corrected = rule_.correction == MomentRule::Correction::moments;
  return clean_first_slot()[i].to(at::kDouble).div(corrected ? scalars(updates_done()).correction1 : 1);
}

at::Tensor MomentOptimizer::denominator(size_t i) const {
  const bool corrected = rule_.correction == MomentRule::Correction::moments;
  const at::Tensor v = slot(1)[i].to(at::kDouble);
  return v.div(corrected ? scalars(updates_done()).correction2 : 1).sqrt_().add_(rule_.eps);
}

}  // namespace basin
