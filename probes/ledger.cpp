#include "probes/ledger.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/math/critical_step.h"
#include "landscape/displaced_weights.h"
#include "probes/common.h"
#include "probes/noise_curvature.h"
#include "probes/noise_scale.h"
#include "probes/preconditioned_curvature.h"
#include "probes/registry.h"
#include "probes/run_preconditioner.h"

namespace basin {
namespace {

const Quantity& quantity_named(const ProbeResult& result, const std::string& name) {
  for (const Quantity& found : result.quantities)
    if (found.name == name) return found;
  TORCH_CHECK(false, "no quantity ", name);
}

Quantity one_of_them(const ProbeResult& result, const std::string& name, const QuantityNaming& naming) {
  Quantity q = quantity_named(result, name);
  q.name = naming.name;
  q.long_name = naming.long_name;
  q.definition = naming.definition;
  q.units = naming.units;
  return q;
}

/// Value, error and interval times `factor`; NaN and not resolved where that isn't finite.
Quantity times(Quantity q, double factor) {
  for (auto* values : {&q.value, &q.uncertainty, &q.ci_low, &q.ci_high})
    for (double& value : *values) value *= factor;
  if (q.status == ProbeStatus::ok && !std::isfinite(factor)) q.status = ProbeStatus::not_resolved;
  return q;
}

/// The loss along -P^{-1} G from the weights.
struct AlongUpdate {
  double loss = kNaN, slope = kNaN;  // L(w) and G'P^{-1}G
  double decrease = kNaN;            // of a step of the effective learning rate
  double effective_rate = kNaN;
  CriticalStep step;  // in units of `unit`
  double unit = kNaN;
  bool finite = true;
};

class Ledger final : public Probe {
 public:
  explicit Ledger(const LedgerOptions& options) : Probe("ledger"), options_(options) {}

  ProbeCost expected_cost() const override {
    ProbeCost cost{2 + 3, 0};  // 9 forward passes are three gradients
    const auto add = [&](const ProbeCost& more) {
      cost.gradients += more.gradients;
      cost.hvps += more.hvps;
    };
    add(curvature()->expected_cost());
    add(noise()->expected_cost());
    if (options_.b_hessian) add(weighted_noise()->expected_cost());
    return cost;
  }
  std::vector<Answer> needs() const override {
    std::vector<Answer> needed{Answer::loss, Answer::gradient, Answer::product, Answer::batch_gradient};
    if (!options_.b_hessian) return needed;
    for (const Answer answer : weighted_noise()->needs())
      if (std::find(needed.begin(), needed.end(), answer) == needed.end()) needed.push_back(answer);
    return needed;
  }

 private:
  std::unique_ptr<Probe> curvature() const {
    PreconditionedCurvatureOptions o;
    o.tolerance = options_.tolerance;
    return make_preconditioned_curvature(o);
  }
  std::unique_ptr<Probe> noise() const {
    NoiseScaleOptions o;
    o.estimator = options_.estimator;
    return make_noise_scale(o);
  }
  std::unique_ptr<Probe> weighted_noise() const {
    NoiseCurvatureOptions o;
    o.count = 1;
    o.tolerance = options_.tolerance;
    o.trace_samples = 3;
    return make_noise_curvature(o);
  }

  void measure(const ProbeContext& context, ProbeResult& result) override {
    ProbeContext inner = context;  // the parts are short: their searches keep no state
    inner.state_path.clear();
    const double limit = context.optimizer ? context.optimizer->frozen_stability_limit() : kNaN;
    const ProbeResult curved = curvature()->run(inner);
    add_curvature(curved, limit, result);
    add_noise(inner, result);
    const AlongUpdate along = along_update(context, quantity_named(curved, "lambda").value.at(0));
    add_along(along, context.learning_rate, limit, result);
    const double gain = context.optimizer ? context.optimizer->gain() : kNaN;
    add_decrease_at_limit(curved, gain * limit * along.slope, result);
    result.status = gravest_status(result.quantities);
    if (result.status != ProbeStatus::ok) {
      std::vector<std::string> names;
      for (const Quantity& q : result.quantities)
        if (q.status != ProbeStatus::ok) names.push_back(fmt::format("{} ({})", q.name, to_string(q.status)));
      result.message = fmt::format("not ok: {}", fmt::join(names, ", "));
    }
    result.attributes.insert(
        result.attributes.end(),
        {{"learning_rate", context.learning_rate},
         {"effective_rate", along.effective_rate},
         {"batch_size", context.batch_size},
         {"stability_limit", limit},
         {"limit_is_gauge", context.optimizer && std::isnan(context.optimizer->stability_limit())},
         {"forward_passes", along.step.evaluations + 1},
         {"subset_loss_here", along.loss}});
  }

  static void add_curvature(const ProbeResult& found, double limit, ProbeResult& result) {
    result.quantities.push_back(times(
        one_of_them(found, "rate_lambda_1",
                    {"curvature_over_limit", "learning rate times preconditioned curvature over its limit",
                     "ledger-curvature", "1"}),
        1 / limit));
  }

  /// `promised` over lambda_1: what a step promises at the rate of the limit. Within what lambda_1 lies in.
  static void add_decrease_at_limit(const ProbeResult& found, double promised, ProbeResult& result) {
    const Quantity& largest = quantity_named(found, "lambda");
    Quantity q = named(
        {"decrease_at_limit", "decrease that the gradient promises for one update at the method's limit",
         "ledger-decrease-at-limit", "loss"},
        UncertaintyKind::residual);
    const double lambda = largest.value.at(0), residual = largest.uncertainty.at(0);
    q.value = {promised / lambda};
    q.ci_low = {promised / (lambda + residual)};
    q.ci_high = {residual < lambda ? promised / (lambda - residual) : kInfinity};
    q.uncertainty = {q.ci_high[0] - q.value[0]};
    q.status = largest.status;
    if (q.status == ProbeStatus::ok && !(lambda > 0 && std::isfinite(promised)))
      q.status = ProbeStatus::not_resolved;
    result.quantities.push_back(std::move(q));
  }

  void add_noise(const ProbeContext& context, ProbeResult& result) const {
    const ProbeResult found = noise()->run(context);
    const Quantity simple = one_of_them(
        found, "b_simple_finite",
        {"b_simple", "gradient noise scale, of the finite set", "noise-scale-finite", "examples"});
    const auto n = static_cast<double>(context.train_examples), b = static_cast<double>(context.batch_size);
    const double share = context.batch_size > 0 && n > 1 ? std::max(0.0, 1 / b - 1 / n) * n / (n - 1) : kNaN;
    Quantity ratio = times(simple, share);
    ratio.name = "noise_over_gradient";
    ratio.long_name = "squared noise of the run's batches over the squared gradient";
    ratio.definition = "ledger-noise";
    ratio.units = "1";
    result.quantities.push_back(std::move(ratio));
    result.quantities.push_back(simple);
    if (!options_.b_hessian) return;
    result.quantities.push_back(
        one_of_them(weighted_noise()->run(context), "b_hessian_finite",
                    {"b_hessian", "Hessian-weighted gradient noise scale, of the finite set",
                     "noise-scale-hessian-finite", "examples"}));
  }

  /// `lambda`: the largest preconditioned eigenvalue; NaN where there is none.
  AlongUpdate along_update(const ProbeContext& context, double lambda) const {
    AlongUpdate found;
    Problem& problem = context.problem;
    const ParameterVector& vector = problem.parameters();
    const at::Tensor gradient = problem.gradient(&found.loss);
    found.finite = std::isfinite(found.loss) && at::isfinite(gradient).all().item<bool>();
    if (!found.finite) return found;
    const RunPreconditioner p(context, gradient);
    if (!p.exists()) return found;
    const at::Tensor g = gradient.to(at::kDouble), direction = p.inverse(g);
    found.slope = (g * direction).sum().item<double>();
    const DisplacedWeights weights(vector);
    const auto loss = [&](double rate) {
      weights.move(direction * -rate);
      return problem.loss();
    };
    const double rounding = gradient.scalar_type() == at::kDouble ? 1e-12 : kLossRounding;
    const double least = rounding * std::abs(found.loss);
    found.effective_rate = context.learning_rate * context.optimizer->gain();
    if (found.effective_rate * found.slope >= least) found.decrease = found.loss - loss(found.effective_rate);
    // No parabola turns before 2/lambda; without lambda from a step as long as one that halves a parabola's loss. Not from the
    // learning rate: at the end of a schedule it is 0, or so small that rounding decides.
    found.unit = lambda > 0 ? 2 / lambda : found.loss / found.slope;
    if (found.slope > 0 && std::isfinite(found.unit))
      found.step = critical_step([&](double factor) { return loss(factor * found.unit); }, found.loss,
                                 options_.step_tolerance);
    if (found.step.value * found.unit * found.slope < least) found.step.value = kNaN;
    return found;
  }

  static void add_along(const AlongUpdate& along, double rate, double limit, ProbeResult& result) {
    Quantity share = named({"first_order_share", "realised share of the decrease that the gradient promises",
                            "ledger-first-order", "1"},
                           UncertaintyKind::none);
    share.value = {along.decrease / (along.effective_rate * along.slope)};
    share.uncertainty = {0};
    result.quantities.push_back(judged(share, along));
    Quantity sharpness = named({"critical_sharpness", "critical sharpness along the update",
                                "critical-sharpness", "1/learning_rate"},
                               UncertaintyKind::eigenvalue_bound);
    const double low = 2 / (along.unit * along.step.high), high = 2 / (along.unit * along.step.low);
    sharpness.value = {2 / (along.unit * along.step.value)};
    sharpness.uncertainty = {std::max(high - sharpness.value[0], sharpness.value[0] - low)};
    sharpness.ci_low = {low};
    sharpness.ci_high = {high};
    result.quantities.push_back(judged(sharpness, along));
    Quantity over = times(result.quantities.back(), rate / limit);
    over.name = "critical_over_limit";
    over.long_name = "learning rate times critical sharpness over the limit of the method";
    over.definition = "ledger-critical";
    over.units = "1";
    result.quantities.push_back(judged(over, along));
  }

  static Quantity judged(Quantity q, const AlongUpdate& along) {
    if (!std::isfinite(q.value[0])) q.uncertainty = q.ci_low = q.ci_high = {kNaN};
    q.status = !along.finite                ? ProbeStatus::nonfinite
               : !std::isfinite(q.value[0]) ? ProbeStatus::not_resolved
                                            : ProbeStatus::ok;
    return q;
  }

  LedgerOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, LedgerOptions& options) {
  table.add("estimator", options.estimator, one_of({"paired", "per_example"}),
            "of the noise: gradients of groups of examples, or of single examples");
  table.add("tolerance", options.tolerance, between(1e-12, 0.5),
            "relative error of the preconditioned lambda_1");
  table.add("step_tolerance", options.step_tolerance, between(1e-6, 1),
            "relative width of the bracket of the critical learning rate");
  table.add("b_hessian", options.b_hessian, anything(),
            "measure the Hessian-weighted noise scale too, at twice the cost");
}

std::unique_ptr<Probe> make_ledger(const LedgerOptions& options) { return std::make_unique<Ledger>(options); }

ProbeEntry ledger_entry() {
  return probe_entry<LedgerOptions, make_ledger>({
      .name = "ledger",
      .label = "ledger",
      .help = "what limits the next update: noise, curvature or neither",
      .version = 5,
      .definitions = {"ledger-curvature", "ledger-noise", "noise-scale-finite", "noise-scale-hessian-finite",
                      "ledger-first-order", "critical-sharpness", "ledger-critical",
                      "ledger-decrease-at-limit"},
      .entries = {"curvature_over_limit", "noise_over_gradient", "b_simple", "b_hessian", "first_order_share",
                  "critical_sharpness", "critical_over_limit", "decrease_at_limit"},
      .headlines = {{"curvature_over_limit", "", "η λ₁(P⁻¹H) over its limit"},
                    {"noise_over_gradient", "", "noise over gradient"},
                    {"critical_sharpness", "", "critical sharpness λ_c"},
                    {"decrease_at_limit", "", "decrease at the limit"}},
      .audit = {.cheap = {"b_hessian=false"}},
  });
}

}  // namespace basin
