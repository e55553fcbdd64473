#include "probes/gradient_statistics.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/math/nan.h"
#include "probes/gradient_findings.h"
#include "probes/registry.h"

namespace basin {
namespace {

class GradientStatistics final : public Probe {
 public:
  explicit GradientStatistics(const GradientStatisticsOptions& options)
      : Probe("gradient_statistics"), options_(options) {}

  /// Two passes of some more than a gradient each.
  ProbeCost expected_cost() const override { return {options_.signal_to_noise ? 3.3 : 2.7, 0}; }
  std::vector<Answer> needs() const override { return {Answer::batch_gradient}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const LayerSums layers(context.problem.parameters());
    const GradientFindings found = gradient_findings(options_, context, layers);
    add_noise(found, context.train_examples, result);
    if (options_.signal_to_noise) add_signal(found, result);
    add_percentiles(found, result);
    if (options_.by_layer) add_layers(found, result);
    conclude(found, result);
    result.attributes.emplace_back("gradients", int64_t{2});
    if (options_.signal_to_noise) result.attributes.emplace_back("gsnr_parameters", found.counted);
    if (options_.by_layer) result.attributes.emplace_back("layers", layers.names());
  }

  static void add_noise(const GradientFindings& found, int64_t set_examples, ProbeResult& result) {
    for (const Side side : {Side::population, Side::finite}) {
      for (Quantity& q : noise_quantities(numbers(found.whole, side), side, !found.finite))
        result.quantities.push_back(std::move(q));
    }
    for (const Side side : {Side::population, Side::finite}) add_ratios(found, side, set_examples, result);
  }

  static const NoiseNumbers& numbers(const GradientNoise& noise, Side side) {
    return side == Side::population ? noise.estimate.population : noise.estimate.finite;
  }

  /// n Delta, Delta where there is an n, and coherence; their intervals are that of B, which all follow.
  static void add_ratios(const GradientFindings& found, Side side, int64_t set_examples,
                         ProbeResult& result) {
    const NoiseNumbers& noise = numbers(found.whole, side);
    const Estimate& b = noise.b_simple;
    const double squares = found.whole.mean_squared_norm, g2 = noise.g2.value, one = 1 + b.value;
    const auto n = static_cast<double>(set_examples);
    const auto add = [&](const QuantityNaming& naming, const Estimate& e) {
      const ProbeStatus status = status_of(e, noise.resolved, !found.finite);
      result.quantities.push_back(estimated(naming, side, e, status));
    };
    const Estimate bound{squares / g2, b.error, 1 + b.low, 1 + b.high};
    add({"batch_bound", "batch size that gradient diversity bounds", "gradient-diversity", "examples"},
        bound);
    if (side == Side::finite) {
      add({"diversity", "gradient diversity", "gradient-diversity", "1"},
          {bound.value / n, bound.error / n, bound.low / n, bound.high / n});
    }
    add({"coherence", "gradient coherence", "gradient-coherence", "1"},
        {g2 / squares, b.error / (one * one), 1 / (1 + b.high), 1 / (1 + b.low)});
  }

  /// Exact, or nothing: from a part of the examples the bias is as large as the ratio, and no error shows it.
  static ProbeStatus signal_status(const GradientFindings& found, const Estimate& e) {
    return status_of(e, e.error == 0 && e.low > 0, !found.finite);
  }
  static bool is_estimated_signal(const Quantity& q) {
    const auto has_error = [](double error) { return error > 0; };
    return q.definition.rfind("gsnr", 0) == 0 &&
           std::any_of(q.uncertainty.begin(), q.uncertainty.end(), has_error);
  }

  static void add_signal(const GradientFindings& found, ProbeResult& result) {
    const auto add = [&](const std::string& name, const std::string& over,
                         const SignalToNoiseEstimate& both) {
      for (const Side side : {Side::population, Side::finite}) {
        const Estimate& e = side == Side::population ? both.population : both.finite;
        result.quantities.push_back(
            estimated({name, "gradient signal to noise ratio, mean over " + over, "gsnr", "1"}, side, e,
                      signal_status(found, e)));
      }
    };
    add("gsnr", "parameters", found.over_parameters);
    add("gsnr_layer_mean", "layers of their means", found.over_layers);
  }

  void add_percentiles(const GradientFindings& found, ProbeResult& result) const {
    for (size_t i = 0; i < found.percentiles.size(); ++i) {
      const Estimate& e = found.percentiles[i];
      const int64_t percent = options_.percentiles[i];
      const bool open = e.low == -kInfinity || e.high == kInfinity;
      result.quantities.push_back(
          estimated({fmt::format("gradient_norm_p{}", percent),
                     fmt::format("{} % percentile of single gradients' norms", percent),
                     "gradient-norm-percentile", "loss/weight"},
                    Side::finite, e, status_of(e, !open, !found.finite)));
    }
  }

  void add_layers(const GradientFindings& found, ProbeResult& result) const {
    std::vector<std::vector<Quantity>> layers;
    for (size_t l = 0; l < found.layers.size(); ++l) {
      layers.push_back(noise_quantities(numbers(found.layers[l], Side::finite), Side::finite, !found.finite));
      if (!options_.signal_to_noise) continue;
      const Estimate& e = found.of_layers[l].finite;
      layers.back().push_back(
          estimated({"gsnr", "gradient signal to noise ratio, mean over parameters", "gsnr", "1"},
                    Side::finite, e, signal_status(found, e)));
    }
    for (size_t k = 0; k < layers.front().size(); ++k) {
      std::vector<Quantity> entries;
      for (const std::vector<Quantity>& layer : layers) entries.push_back(layer[k]);
      result.quantities.push_back(by_layer(entries));
    }
  }

  /// One quantity for each layer as a vector.
  static Quantity by_layer(const std::vector<Quantity>& entries) {
    Quantity q = named({"layer_" + entries.front().name, entries.front().long_name + ", by layer",
                        entries.front().definition, entries.front().units},
                       UncertaintyKind::none);
    q.is_vector = true;
    for (const Quantity& entry : entries) {
      q.value.push_back(entry.value.front());
      q.uncertainty.push_back(entry.uncertainty.front());
      q.ci_low.push_back(entry.ci_low.front());
      q.ci_high.push_back(entry.ci_high.front());
      q.entry_status.push_back(entry.status);
      if (entry.uncertainty_kind != UncertaintyKind::none) q.uncertainty_kind = entry.uncertainty_kind;
    }
    q.status = gravest_status(q.entry_status);
    return q;
  }

  static void conclude(const GradientFindings& found, ProbeResult& result) {
    std::vector<Quantity> counted;  // those that may be resolved
    std::copy_if(result.quantities.begin(), result.quantities.end(), std::back_inserter(counted),
                 [&](const Quantity& q) { return !found.finite || !is_estimated_signal(q); });
    result.status = gravest_status(counted);
    if (result.status == ProbeStatus::ok) return;
    const NoiseEstimate& noise = found.whole.estimate;
    std::vector<std::string> names;
    for (const Quantity& q : counted) {
      if (q.status != ProbeStatus::ok) names.push_back(q.name);
    }
    if (!found.finite) {
      result.message = "a gradient was not finite";
    } else if (!noise.population.resolved || !noise.finite.resolved) {
      result.message = unresolved_message(noise);
    } else {
      result.message = fmt::format("not resolved: {}", fmt::join(names, ", "));
    }
  }

  GradientStatisticsOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, GradientStatisticsOptions& options) {
  table.add("percentiles", options.percentiles, distinct(between(1, 99)),
            "percentiles of the per-example gradient norms");
  table.add("signal_to_noise", options.signal_to_noise, anything(),
            "also measure the gradient signal-to-noise ratio (GSNR)");
  table.add("by_layer", options.by_layer, anything(), "also per layer, which adds as many columns to tables");
}

std::unique_ptr<Probe> make_gradient_statistics(const GradientStatisticsOptions& options) {
  return std::make_unique<GradientStatistics>(options);
}

ProbeEntry gradient_statistics_entry() {
  return probe_entry<GradientStatisticsOptions, make_gradient_statistics>({
      .name = "gradient_statistics",
      .label = "gradient statistics",
      .help = "gradient noise from per-example gradients: diversity, coherence, GSNR, norms",
      .version = 4,
      .draws = false,
      .definitions = {"noise-scale-population", "noise-scale-finite", "gradient-diversity-population",
                      "gradient-diversity-finite", "gradient-coherence-population",
                      "gradient-coherence-finite", "gsnr-population", "gsnr-finite",
                      "gradient-norm-percentile-finite"},
      .entries = {"b_simple", "g2", "tr_sigma", "b_simple_finite", "g2_finite", "tr_sigma_finite",
                  "batch_bound", "batch_bound_finite", "diversity_finite", "coherence", "coherence_finite",
                  "gsnr", "gsnr_finite", "gsnr_layer_mean", "gsnr_layer_mean_finite",
                  "gradient_norm_p#_finite", "layer_*_#"},
      .copies = {"batch_bound", "coherence", "diversity"},
  });
}

}  // namespace basin
