#include "optim/lars.h"

#include "core/error.h"
#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

using Denominator = MomentumRule::Denominator;

constexpr const char* kBuffer = "momentum";  // the slot

const std::vector<std::pair<std::string, Denominator>> kDenominators{
    {"gradient_plus_decay", Denominator::gradient_plus_decay},
    {"decayed_gradient", Denominator::decayed_gradient},
    {"decayed_gradient_plus_decay", Denominator::decayed_gradient_plus_decay},
    {"gradient", Denominator::gradient},
    {"momentum", Denominator::momentum}};

std::vector<std::string> memoryless_lars() {
  return {"momentum=0", "weight_decay=0", "exclude_from_trust=[]"};
}
std::vector<std::string> undecayed_lars() { return {"weight_decay=0", "trust_coefficient=1"}; }

Denominator denominator_of(const std::string& name) {
  for (const auto& [known, value] : kDenominators)
    if (known == name) return value;
  throw ConfigError("unknown denominator \"" + name + "\"");
}

std::vector<std::string> denominator_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : kDenominators) names.push_back(name);
  return names;
}

void bind_fields(OptionTable& table, LarsOptions& o) {
  table.add("trust_coefficient", o.trust_coefficient, greater_than(0), "eta of the paper");
  table.add("less_momentum", o.less_momentum, anything(), "multiply trust_coefficient by 1 - momentum");
  table.add("momentum", o.momentum, half_open(0, 1), "share of the last step that is kept");
  table.add("moving_average", o.moving_average, anything(),
            "multiply what enters the momentum buffer by 1 - momentum");
  table.add("weight_decay", o.weight_decay, at_least(0),
            "weight decay coefficient, beta of the paper; in gradient and denominator");
  table.add("decay", o.decay, one_of({"gradient", "decoupled"}),
            "gradient: gradient + weight_decay * weight; decoupled: weights shrink by learning rate * "
            "weight_decay");
  table.add("denominator", o.denominator, one_of(denominator_names()),
            "norm that the trust ratio divides by");
  table.add("eps", o.eps, at_least(0), "added to the trust ratio's denominator; 0 in the paper");
  table.add("rate_in", o.rate_in, one_of({"buffer", "step"}),
            "apply the learning rate when filling the momentum buffer, or in the step");
  table.add("ratio_in", o.ratio_in, one_of({"buffer", "step"}),
            "apply the trust ratio when filling the momentum buffer, or in the step");
  table.add("max_ratio", o.max_ratio, at_least(0), "upper bound on the trust ratio; 0: none");
  table.add("clip", o.clip, anything(), "LARC's clipping: use min(trust ratio / learning rate, 1)");
  table.add("max_element", o.max_element, at_least(0),
            "upper bound on the elements of the gradient with its decay; 0: none");
  table.add("without_ratio", o.without_ratio, one_of({"coefficient", "one"}),
            "factor for excluded parameters and where a norm is 0");
  table.add("zero_norm", o.zero_norm, one_of({"denominator", "any"}),
            "no trust ratio where the weights' norm or the denominator is 0 (denominator), or the gradient's "
            "norm too (any)");
  table.add("zero_norm_drops_decay", o.zero_norm_drops_decay, anything(),
            "no weight decay where a norm is 0");
  table.add("buffer_start", o.buffer_start, one_of({"zero", "gradient"}), "initial momentum buffer");
  bind_exclusion(table, o.exclude_from_decay);
  table.add("exclude_from_trust", o.exclude_from_trust, exclusions_from_trust(),
            "parameters without trust ratio");
}

}  // namespace

LarsOptions::LarsOptions() { preset = values_of = "basin"; }

LarcOptions::LarcOptions() : LarsOptions(find_entry(lars_presets(), "apex", "preset").values) {}

void bind_options(OptionTable& table, LarsOptions& options) {
  bind_presets(table, options, lars_presets(), bind_fields,
               "named set of values for all options below that aren't set; docs/optimizers.md");
  bind_factors(table, options.lr_factors, options.decay_factors);
  bind_trust_arm(table, options.arm);
}

void bind_options(OptionTable& table, LarcOptions& options) {
  bind_options(table, static_cast<LarsOptions&>(options));
}

Lars::Lars(std::vector<ParameterInfo> parameters, const LarsOptions& o)
    : Optimizer(std::move(parameters)),
      arm_(o.arm.trust),
      starts_with_gradient_(o.buffer_start == "gradient") {
  if (o.momentum == 0 && (starts_with_gradient_ || o.denominator == "momentum")) {
    throw ConfigError(
        fmt::format("lars: momentum = 0 leaves no buffer for {}",
                    starts_with_gradient_ ? "buffer_start = \"gradient\"" : "denominator = \"momentum\""));
  }
  if (o.denominator == "momentum" && (o.rate_in != "step" || o.ratio_in != "step"))
    throw ConfigError(
        "lars: denominator = \"momentum\" needs rate_in = \"step\" and ratio_in = \"step\": its ratio comes "
        "after the buffer");
  if (o.zero_norm_drops_decay && o.denominator != "gradient_plus_decay" && o.denominator != "gradient") {
    throw ConfigError(fmt::format(
        "lars: zero_norm_drops_decay = true needs a denominator without decay in a norm, not \"{}\"",
        o.denominator));
  }
  TreatmentRules rules = decay_rules(o);
  rules.without_trust = o.exclude_from_trust;
  treatments_ = treatments(parameters_, rules);
  set_ratio_sources("lars", o.arm, parameters_, treatments_);
  rule_.momentum = o.momentum;
  if (o.moving_average) rule_.dampening = o.momentum;
  rule_.rate_inside = o.rate_in == "buffer";
  rule_.decoupled = o.decay == "decoupled";
  if (o.max_element > 0) rule_.limit = o.max_element;
  rule_.adaptive = true;
  rule_.coefficient = o.trust_coefficient * (o.less_momentum ? 1 - o.momentum : 1);
  rule_.eps = o.eps;
  rule_.denominator = denominator_of(o.denominator);
  rule_.ratio_inside = o.ratio_in == "buffer";
  if (o.max_ratio > 0) rule_.ratio_max = o.max_ratio;
  rule_.clip_to_rate = o.clip;
  rule_.excluded_ratio = rule_.degenerate_ratio = o.without_ratio == "one" ? 1 : rule_.coefficient;
  rule_.needs_gradient = o.zero_norm == "any";
  rule_.degenerate_drops_decay = o.zero_norm_drops_decay;
  if (o.momentum > 0) add_slot(kBuffer);
  if (rule_.buffer_first()) add_clean_twin();
}

std::string Lars::trust_ratio_definition() const {
  return arm_definition(
      arm_,
      fmt::format("{:g} |w| / |{}| of each tensor{}, {:g} where a norm is 0: factor on top of the learning "
                  "rate on {}; "
                  "NaN where excluded",
                  rule_.coefficient, kDenominators[static_cast<size_t>(rule_.denominator)].first,
                  rule_.clip_to_rate ? ", over the learning rate and at most 1" : "", rule_.degenerate_ratio,
                  rule_.ratio_inside ? "the new gradient as it enters the momentum buffer, not on the step"
                                     : "the whole step"));
}

double Lars::stability_limit() const {
  if (!has_given_ratios(treatments_)) return NAN;
  return 2 * (1 + rule_.momentum) / (1 - rule_.dampening);
}

// Heavy ball: v = m v + c g, c = gain (1 - m), has the limit 2 (1 + m) / c.
double Lars::frozen_stability_limit() const {
  const double m = rule_.momentum;
  return m == 0 ? 2 : 2 * (1 + m) / (rule_.gain() * (1 - m));
}

std::vector<at::Tensor> Lars::preconditioner(const std::vector<at::Tensor>& gradients) const {
  std::vector<at::Tensor> p = Optimizer::preconditioner(gradients);
  std::vector<double> live;
  for (size_t i = 0; i < p.size(); ++i) {
    const at::Tensor w = parameters_[i].tensor.detach();
    TensorSums sums{.weight = squared_norm(w), .gradient = squared_norm(gradients[i])};
    sums.direction =
        rule_.decoupled ? sums.gradient : squared_norm(gradients[i].add(w, treatments_[i].decay));
    live.push_back(rule_.ratio(sums, treatments_[i], {.rate = learning_rate()}));
  }
  const std::vector<double> ratios = stepped_ratios(live, treatments_);
  for (size_t i = 0; i < p.size(); ++i) p[i].div_(ratios[i]);
  return p;
}

void Lars::update(TensorLists& lists) {
  if (rule_.momentum > 0) {
    lists.first = slot(0);
    for (size_t i = 0; starts_with_gradient_ && updates_done() == 0 && i < lists.first.size(); ++i) {
      lists.first[i].copy_(lists.gradients[i]);
      if (!lists.clean_first.empty()) lists.clean_first[i].copy_(lists.clean_gradients[i]);
    }
  }
  report(
      momentum_step(rule_, {.rate = learning_rate(), .norms = takes_norms()}, treatments_, lists, tables_));
}

namespace {

OptimizerTraits traits_of_lars(const LarsOptions& o) {
  const bool rate_in_buffer = o.rate_in == "buffer" && o.momentum > 0;
  return {.momentum = o.momentum, .rate_in_slot = rate_in_buffer ? kBuffer : ""};
}

}  // namespace

OptimizerEntry lars_entry() {
  return optimizer_entry<Lars, LarsOptions>(
      {"lars", "LARS",
       "Layer-wise adaptive rate scaling (You et al. 2017); biases and norms excluded by default.",
       memoryless_lars(), undecayed_lars()},
      traits_of_lars);
}

OptimizerEntry larc_entry() {
  return optimizer_entry<Lars, LarcOptions>(
      {"larc", "LARC", "LARS with a local rate of at most the learning rate, as in apex.", memoryless_lars(),
       undecayed_lars()},
      [](const LarcOptions& o) { return traits_of_lars(o); });
}

}  // namespace basin
