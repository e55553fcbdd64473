#include "optim/lamb.h"

#include "core/error.h"
#include "core/math/tensor_norms.h"
#include "optim/registry.h"

namespace basin {
namespace {

using Correction = MomentRule::Correction;
using Decay = MomentRule::Decay;

const std::vector<std::string> kCorrections{"moments", "none", "rate", "rate_first"};
const std::vector<std::string> kDecays{"update", "decoupled", "decoupled_before", "gradient"};

/// The enumerator of a name's place.
template <class E>
E enumerator(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<E>(std::find(names.begin(), names.end(), name) - names.begin());
}
static_assert(static_cast<int>(Correction::rate_first) == 3 && static_cast<int>(Decay::gradient) == 3);

void bind_fields(OptionTable& table, LambOptions& o) {
  bind_moment_options(table, o,
                      "weight decay coefficient, lambda of the paper; inside the trust ratio's norm");
  table.add("decay", o.decay, one_of(kDecays),
            "where weight decay is applied: in the update and its norm (update), apart from it (decoupled), "
            "before all norms are taken (decoupled_before), or in the gradient");
  table.add(
      "bias_correction", o.bias_correction, one_of(kCorrections),
      "correct both moments, nothing, the learning rate, or the learning rate for the first moment alone");
  table.add("min_weight_norm", o.min_weight_norm, at_least(0),
            "lower bound on |w| in the trust ratio; 0: none");
  table.add("max_weight_norm", o.max_weight_norm, at_least(0),
            "upper bound on |w| in the trust ratio; 0: none");
  table.add("eps_in_ratio", o.eps_in_ratio, anything(), "add eps to the trust ratio's denominator too");
  table.add("max_ratio", o.max_ratio, at_least(0), "upper bound on the trust ratio; 0: none; 1: LAMBC");
  table.add("max_gradient_norm", o.max_gradient_norm, at_least(0),
            "clip all gradients together to this norm; 0: no clipping");
  table.add("clip_eps", o.clip_eps, at_least(0), "added to the norm that clipping divides by");
  table.add("normalise_gradient", o.normalise_gradient, anything(), "scale all gradients together to norm 1");
  table.add("exclude_from_trust", o.exclude_from_trust, exclusions_from_trust(),
            "parameters with trust ratio 1");
}

}  // namespace

LambOptions::LambOptions() {
  eps = 1e-6;
  preset = values_of = "basin";
}

LambcOptions::LambcOptions() : LambOptions(find_entry(lamb_presets(), "timm_clip", "preset").values) {}

void bind_options(OptionTable& table, LambOptions& options) {
  bind_presets(table, options, lamb_presets(), bind_fields,
               "named set of values for all options below that aren't set; docs/optimizers.md");
  bind_factors(table, options.lr_factors, options.decay_factors);
  bind_trust_arm(table, options.arm);
}

void bind_options(OptionTable& table, LambcOptions& options) {
  bind_options(table, static_cast<LambOptions&>(options));
}

Lamb::Lamb(std::vector<ParameterInfo> parameters, const LambOptions& o)
    : MomentOptimizer(std::move(parameters), o, o.exclude_from_trust), arm_(o.arm.trust) {
  set_ratio_sources("lamb", o.arm, parameters_, treatments_);
  add_clean_twin();
  if (o.max_weight_norm > 0 && o.min_weight_norm > o.max_weight_norm) {
    throw ConfigError(fmt::format("lamb: min_weight_norm = {:g} is above max_weight_norm = {:g}",
                                  o.min_weight_norm, o.max_weight_norm));
  }
  rule_.adaptive = true;
  rule_.correction = enumerator<Correction>(kCorrections, o.bias_correction);
  rule_.decay = enumerator<Decay>(kDecays, o.decay);
  rule_.weight_norm_min = o.min_weight_norm;
  if (o.max_weight_norm > 0) rule_.weight_norm_max = o.max_weight_norm;
  if (o.eps_in_ratio) rule_.ratio_eps = o.eps;
  if (o.max_ratio > 0) rule_.ratio_max = o.max_ratio;
  rule_.max_gradient_norm = o.max_gradient_norm;
  rule_.clip_eps = o.clip_eps;
  rule_.normalise_gradient = o.normalise_gradient;
}

std::string Lamb::trust_ratio_definition() const {
  return arm_definition(
      arm_, fmt::format("{}|w| / |u| of each tensor{}, u Adam's direction{}, 1 where either, clamped, is 0: "
                        "factor on top of "
                        "the learning rate on the whole step, without a coefficient; NaN where excluded",
                        rule_.weight_norm_min > 0 || std::isfinite(rule_.weight_norm_max) ? "clamped " : "",
                        std::isfinite(rule_.ratio_max) ? fmt::format(", at most {:g}", rule_.ratio_max) : "",
                        rule_.decay == Decay::update ? " plus weight decay" : ""));
}

double Lamb::stability_limit() const {
  // Clipping and normalisation make P follow the gradient, as trust ratios do.
  if (!has_given_ratios(treatments_) || rule_.needs_gradient_norm()) return NAN;
  return 2 * (1 + rule_.beta1) / (1 - rule_.beta1);
}

std::vector<at::Tensor> Lamb::preconditioner(const std::vector<at::Tensor>& gradients) const {
  const double norm = std::sqrt(squared_norm(gradients));
  const double factor = updates_done() == 0 ? NAN : rule_.gradient_factor({.gradient_norm = norm});
  std::vector<at::Tensor> p;
  std::vector<double> live;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor w = parameters_[i].tensor.detach().to(at::kDouble);
    const at::Tensor below = denominator(i);
    const at::Tensor u = first_moment(i).div_(below);
    if (rule_.decay == Decay::update) u.add_(w, treatments_[i].decay);
    const TensorSums sums{.weight = squared_norm(w), .direction = squared_norm(u)};
    live.push_back(rule_.ratio(sums, treatments_[i], {.rate = learning_rate()}));
    p.push_back(below);
  }
  const std::vector<double> ratios = stepped_ratios(live, treatments_);
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = p[i] / (ratios[i] * rate_correction() * factor * treatments_[i].rate_factor);
  return p;
}

namespace {

std::vector<std::string> memoryless() { return {"beta1=0", "weight_decay=0", "exclude_from_trust=[]"}; }

/// LambOptions and what derives from them.
template <class O>
OptimizerTraits traits_of(const O& o) {
  return {.squares_in = {kSecondMoment},
          .couples_tensors = o.max_gradient_norm > 0 || o.normalise_gradient,
          .momentum = o.beta1};
}

}  // namespace

OptimizerEntry lamb_entry() {
  return optimizer_entry<Lamb, LambOptions>(
      {"lamb",
       "LAMB",
       "Layer-wise adaptive moments (You et al. 2019); biases and norms excluded by default.",
       memoryless(),
       {"weight_decay=0"}},
      traits_of<LambOptions>);
}

OptimizerEntry lambc_entry() {
  return optimizer_entry<Lamb, LambcOptions>({"lambc",
                                              "LAMBC",
                                              "LAMB with trust ratios of at most 1, as in timm.",
                                              memoryless(),
                                              {"weight_decay=0"}},
                                             traits_of<LambcOptions>);
}

}  // namespace basin
