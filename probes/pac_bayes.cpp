#include "probes/pac_bayes.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/seed.h"
#include "landscape/displaced_weights.h"
#include "probes/common.h"
#include "probes/estimators/pac_bayes_bound.h"
#include "probes/estimators/sigma_search.h"
#include "probes/registry.h"

namespace basin {
namespace {

class PacBayes final : public Probe {
 public:
  explicit PacBayes(const PacBayesOptions& options) : Probe("pac_bayes"), options_(options) {}

  ProbeCost expected_cost() const override {
    // A look is `draws` thirds of a gradient. Each end of the interval takes about half as many halvings
    // again; evenly, a sigma near 0.05 takes this many.
    const double width = options_.bisection == "geometric" ? std::log(options_.sigma_max / options_.sigma_min)
                                                           : options_.sigma_max / 0.05;
    const double halvings =
        std::min(std::log2(width / options_.tolerance), static_cast<double>(options_.iterations));
    const double looks = 2 + 2 * std::max(halvings, 1.0);
    return {static_cast<double>(options_.forms.size()) * static_cast<double>(options_.draws) * looks / 3, 0};
  }
  std::vector<Answer> needs() const override { return {Answer::loss, Answer::logits}; }  // accuracy

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    Objective& objective = context.network();
    if (objective.label_kind() == LabelKind::numbers) {
      result.status = ProbeStatus::unavailable;
      result.message = "no accuracy to lose: the labels are numbers";
      return;
    }
    const DisplacedWeights weights(objective.parameters());
    const bool finite = std::isfinite(objective.loss());
    const double accuracy = objective.accuracy();
    forwards_ = 2;
    for (const std::string& form : options_.forms) {
      const SigmaFound found = finite ? search(form, context, weights, accuracy) : nothing();
      add_sigma(form, found, result);
      add_bounds(form, found, context, weights.origin(), result);
    }
    result.attributes.insert(result.attributes.end(),
                             {{"accuracy", finite ? accuracy : kNaN}, {"forwards", forwards_}});
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite) result.message = "the loss is not finite";
  }

  static SigmaFound nothing() {
    SigmaFound none;
    none.status = ProbeStatus::nonfinite;
    return none;
  }

  SigmaFound search(const std::string& form, const ProbeContext& context, const DisplacedWeights& weights,
                    double accuracy) {
    const DropFunction drop = [&](double sigma) {
      const at::Tensor deviation = deviation_of(form, sigma, weights.origin());
      std::vector<double> drops;
      for (int64_t draw = 0; draw < options_.draws; ++draw) {
        throw_if_interrupted();
        at::Generator generator = make_generator(derive_seed(context.seed, "pac-bayes", draw));
        const at::Tensor z = at::randn({weights.origin().numel()}, generator, at::kDouble);
        weights.move(z.to(deviation.device()) * deviation);
        const double drop = context.network().accuracy() - accuracy;
        drops.push_back(options_.drop == "each" ? std::abs(drop) : drop);
      }
      forwards_ += options_.draws;
      const SampleMean mean = mean_of(drops);
      return SampleMean{std::abs(mean.value), mean.standard_error, mean.samples};
    };
    return search_sigma(
        drop, {options_.target, options_.sigma_min, options_.sigma_max, options_.bisection == "geometric",
               options_.tolerance, options_.drop_tolerance, options_.iterations});
  }

  /// The standard deviation of each weight's noise.
  at::Tensor deviation_of(const std::string& form, double sigma, const at::Tensor& w) const {
    const bool squared = options_.noise == "sigma_squared";
    if (form == "plain") return at::full_like(w, squared ? sigma * sigma : sigma);
    const at::Tensor variance = w.square().mul_(sigma * sigma).add_(options_.eps * options_.eps);
    return squared ? variance : variance.sqrt();
  }

  std::string definition(const std::string& name) const {
    return "pac-bayes-" + name + (options_.noise == "sigma_squared" ? "-rgm" : "");
  }

  void add_sigma(const std::string& form, const SigmaFound& found, ProbeResult& result) const {
    const bool plain = form == "plain";
    const std::string tail = plain ? "" : "_magnitude", title = plain ? "" : ", relative to the weights";
    Quantity sigma =
        named({"sigma" + tail, fmt::format("noise that costs {} of the accuracy{}", options_.target, title),
               definition(plain ? "sigma" : "sigma-magnitude"), plain ? "weight" : "1"},
              UncertaintyKind::standard_error);
    sigma.status = found.status;
    sigma.value = {found.sigma};
    sigma.uncertainty = {found.standard_error};
    sigma.ci_low = {found.ci_low};
    sigma.ci_high = {found.ci_high};
    result.quantities.push_back(sigma);
    result.quantities.push_back(function_of(
        found, [](double s) { return 1 / (s * s); },
        named(
            {"inverse_sigma2" + tail, "1/sigma^2" + title, definition("inverse"), plain ? "1/weight^2" : "1"},
            UncertaintyKind::standard_error)));
    if (!found.reason.empty()) add_message(sigma.name + ": " + found.reason, result);
    result.attributes.emplace_back(sigma.name + "_looks", found.sigmas);
    result.attributes.emplace_back(sigma.name + "_drops", found.drops);
    result.attributes.emplace_back(sigma.name + "_drop_errors", found.errors);
  }

  /// Without biases and without what normalisation has.
  static at::Tensor weights_alone(const ParameterVector& vector, const at::Tensor& flat) {
    const std::vector<at::Tensor> parts = vector.unflatten(flat);
    std::vector<at::Tensor> kept;
    for (size_t i = 0; i < parts.size(); ++i)
      if (vector.parameters()[i].kind == ParameterKind::weight) kept.push_back(parts[i].flatten());
    return at::cat(kept);
  }

  /// By the divergence from a prior at the initial weights, and for `magnitude` from one at 0 too.
  void add_bounds(const std::string& form, const SigmaFound& found, const ProbeContext& context,
                  const at::Tensor& all, ProbeResult& result) const {
    const auto m = static_cast<double>(context.train_examples);
    const at::Tensor start = context.initial_weights;
    const double eps = options_.eps;
    const bool rgm = options_.divergence == "distances";
    const ParameterVector& vector = context.problem.parameters();
    const at::Tensor w = rgm ? weights_alone(vector, all) : all;
    at::Tensor away = start.defined() ? all - start.to(all.device(), at::kDouble) : at::Tensor();
    if (rgm && away.defined()) away = weights_alone(vector, away);
    if (form == "plain") {
      const double squared = away.defined() ? away.square().sum().item<double>() : kNaN;
      const auto bound = [&](double s) { return pac_bayes_bound(plain_divergence(squared, s), s, m); };
      result.quantities.push_back(
          bound_from_start(found, away, bound, "pac_bound", "PAC-Bayes bound", "bound", result));
      result.attributes.emplace_back("distance_from_start", std::sqrt(squared));
      return;
    }
    const auto from_start = [&](double s) {
      const double kl = rgm ? rgm_divergence(away, away, s, eps) : magnitude_divergence(w, away, s, eps);
      return pac_bayes_bound(kl, s, m);
    };
    const auto from_zero = [&](double s) {
      const double kl = rgm ? rgm_divergence(w, away, s, eps) : magnitude_divergence(w, w, s, eps);
      return pac_bayes_bound(kl, s, m);
    };
    result.quantities.push_back(bound_from_start(found, away, from_start, "pac_bound_magnitude",
                                                 "PAC-Bayes bound, noise relative to the weights",
                                                 "bound-magnitude", result));
    const QuantityNaming of_zero = {"pac_bound_magnitude_origin",
                                    "PAC-Bayes bound from 0, noise relative to the weights",
                                    definition("bound-magnitude-origin"), "1"};
    result.quantities.push_back(
        rgm ? bound_from_start(found, away, from_zero, of_zero.name, of_zero.long_name,
                               "bound-magnitude-origin", result)
            : function_of(found, from_zero, named(of_zero, UncertaintyKind::standard_error)));
  }

  /// Without the initial weights it is not resolved.
  template <class Function>
  Quantity bound_from_start(SigmaFound found, const at::Tensor& away, const Function& bound,
                            const std::string& name, const std::string& long_name, const std::string& id,
                            ProbeResult& result) const {
    if (!away.defined() && (found.status == ProbeStatus::ok || found.status == ProbeStatus::not_converged)) {
      found = SigmaFound();
      found.status = ProbeStatus::not_resolved;
      add_message(name + ": the run's initial weights (checkpoint start) are not available", result);
    }
    return function_of(found, bound,
                       named({name, long_name + " from the initial weights", definition(id), "1"},
                             UncertaintyKind::standard_error));
  }

  /// Its interval is its range over sigma's, by all that was looked at there: the magnitude bounds may turn
  /// inside. Its error is sigma's times the larger of its slope here and its range over sigma's interval.
  template <class Function>
  static Quantity function_of(const SigmaFound& found, const Function& f, Quantity q) {
    q.status = found.status;
    q.value = q.uncertainty = q.ci_low = q.ci_high = {kNaN};
    if (std::isnan(found.sigma)) return q;
    const double step = 1e-4 * found.sigma;
    const double slope = (f(found.sigma + step) - f(found.sigma - step)) / (2 * step);
    const double value = f(found.sigma);
    if (!std::isfinite(value)) {  // eps = 0 and a weight of exactly 0
      q.status = ProbeStatus::nonfinite;
      return q;
    }
    const auto [low, high] = std::minmax({value, f(found.ci_low), f(found.ci_high)});
    q.ci_low = {low};
    q.ci_high = {high};
    for (const double s : found.sigmas) {
      if (s < found.ci_low || s > found.ci_high) continue;
      q.ci_low = {std::min(q.ci_low[0], f(s))};
      q.ci_high = {std::max(q.ci_high[0], f(s))};
    }
    const double mean_slope = (q.ci_high[0] - q.ci_low[0]) / (found.ci_high - found.ci_low);
    q.value = {value};
    q.uncertainty = {found.standard_error *
                     std::max(std::abs(slope), std::isfinite(mean_slope) ? mean_slope : 0)};
    return q;
  }

  static void add_message(const std::string& text, ProbeResult& result) {
    result.message += (result.message.empty() ? "" : "; ") + text;
  }

  PacBayesOptions options_;
  int64_t forwards_ = 0;
};

const std::vector<Preset<PacBayesOptions>>& pac_bayes_variants() {
  static const std::vector<Preset<PacBayesOptions>> presets = [] {
    PacBayesOptions rgm;
    rgm.noise = "sigma_squared";
    rgm.bisection = "arithmetic";
    rgm.sigma_min = 0;
    rgm.iterations = 15;
    rgm.drop_tolerance = 1e-2;
    rgm.divergence = "distances";
    rgm.drop = "mean";
    return std::vector{preset("none", PacBayesOptions()), preset("rgm", rgm)};
  }();
  return presets;
}

void bind_fields(OptionTable& table, PacBayesOptions& options) {
  table.add("forms", options.forms, distinct(one_of({"plain", "magnitude"})),
            "noise of one size for all weights (plain), or proportional to each weight (magnitude)");
  table.add("target", options.target, between(1e-6, 1), "drop of the accuracy, as a share of all examples");
  table.add("eps", options.eps, at_least(0), "magnitude: scale of the noise on a weight that is 0");
  table.add("draws", options.draws, between(2, 100000), "draws of the noise, the same ones for every sigma");
  table.add("sigma_min", options.sigma_min, at_least(0), "lower end of the range searched");
  table.add("sigma_max", options.sigma_max, greater_than(0), "upper end of the range searched");
  table.add("bisection", options.bisection, one_of({"geometric", "arithmetic"}),
            "middle of a bracket; geometric needs sigma_min > 0");
  table.add("tolerance", options.tolerance, between(1e-6, 1), "width of the last bracket, relative to sigma");
  table.add("drop_tolerance", options.drop_tolerance, at_least(0),
            "stop as soon as the drop is this close to the target; 0: don't");
  table.add("iterations", options.iterations, between(1, 200), "most bisection steps");
  table.add("noise", options.noise, one_of({"sigma", "sigma_squared"}),
            "standard deviation of the noise: sigma or its square; docs/probes.md");
  table.add(
      "drop", options.drop, one_of({"each", "mean"}),
      "mean over draws of |change of accuracy| (each), or |mean change|, as one published tool computes it");
  table.add("divergence", options.divergence, one_of({"gaussians", "distances"}),
            "magnitude bounds: divergence of the noise that was measured, or one published tool's: with "
            "distances in its place, and only the entries of weights in all bounds");
}

void check(const PacBayesOptions& options) {
  if (options.sigma_min >= options.sigma_max)
    throw ConfigError(fmt::format("pac_bayes.sigma_min = {} violates sigma_min < sigma_max = {}",
                                  options.sigma_min, options.sigma_max));
  const bool squared = options.noise == "sigma_squared", mean = options.drop == "mean",
             distances = options.divergence == "distances";
  if (squared != mean || squared != distances)
    throw ConfigError(
        "pac_bayes: noise, drop and divergence must all have the tool's values (compat = \"rgm\") or none of "
        "them");
  if (options.bisection == "geometric" && options.sigma_min == 0)
    throw ConfigError(
        "pac_bayes.sigma_min = 0 violates sigma_min > 0, which bisection = \"geometric\" needs");
}

}  // namespace

PacBayesOptions::PacBayesOptions() { preset = values_of = "none"; }

void bind_options(OptionTable& table, PacBayesOptions& options) {
  bind_presets(table, options, pac_bayes_variants(), bind_fields,
               "reproduce a published tool: its values for all options below that aren't set; docs/probes.md",
               "compat");
}

std::unique_ptr<Probe> make_pac_bayes(const PacBayesOptions& options) {
  check(options);
  return std::make_unique<PacBayes>(options);
}

ProbeEntry pac_bayes_entry() {
  return probe_entry<PacBayesOptions, make_pac_bayes>({
      .name = "pac_bayes",
      .label = "PAC-Bayes",
      .help = "noise on the weights that lowers the accuracy by 0.1",
      .version = 2,
      .definitions = {"pac-bayes-sigma", "pac-bayes-sigma-magnitude", "pac-bayes-inverse", "pac-bayes-bound",
                      "pac-bayes-bound-magnitude", "pac-bayes-bound-magnitude-origin", "pac-bayes-sigma-rgm",
                      "pac-bayes-sigma-magnitude-rgm", "pac-bayes-inverse-rgm", "pac-bayes-bound-rgm",
                      "pac-bayes-bound-magnitude-rgm", "pac-bayes-bound-magnitude-origin-rgm"},
      .entries = {"sigma", "inverse_sigma2", "sigma_magnitude", "inverse_sigma2_magnitude", "pac_bound",
                  "pac_bound_magnitude", "pac_bound_magnitude_origin"},
      .audit = {.cheap = {"draws=6", "tolerance=0.05"},
                .variants = {{"eps=0", {"eps=0", "forms=[\"magnitude\"]"}}, {"", {"compat=rgm"}}}},
  });
}

}  // namespace basin
