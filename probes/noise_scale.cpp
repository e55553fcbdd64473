#include "probes/noise_scale.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/interrupt.h"
#include "core/seed.h"
#include "probes/common.h"
#include "probes/noise_estimate.h"

namespace basin {
namespace {

constexpr int64_t kLeastGroups = 8;
constexpr int64_t kKeepBytes = int64_t{512} << 20;

Quantity to_quantity(const std::string& name, const std::string& long_name, const std::string& units,
                     bool population, const Estimate& estimate) {
  Quantity q =
      named({population ? name : name + "_finite", long_name + (population ? "" : ", of the finite set"),
             population ? "noise-scale-population" : "noise-scale-finite", units},
            estimate.error == 0 ? "none" : "standard_error");
  q.value = {estimate.value};
  q.uncertainty = {estimate.error};
  q.ci_low = {estimate.low};
  q.ci_high = {estimate.high};
  return q;
}

/// A number that does not exist: too few examples, or gradients that are not finite.
Estimate nothing() { return {kNaN, kNaN, kNaN, kNaN}; }

NoiseEstimate empty_estimate() {
  const NoiseNumbers none{nothing(), nothing(), nothing(), false};
  return {none, none, true};
}

class NoiseScale final : public Probe {
 public:
  explicit NoiseScale(const NoiseScaleOptions& options) : Probe("noise_scale"), options_(options) {}

  /// One pass in small groups of examples, each of which costs what a larger one does.
  ProbeCost expected_cost() const override { return {3, 0}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const int64_t n = context.objective.examples();
    const int64_t asked = options_.estimator == "per_example" ? 1 : options_.group_size;
    const int64_t group_size = std::max<int64_t>(1, std::min(asked, n / kLeastGroups));
    NoiseEstimate estimate = empty_estimate();
    if (n >= kLeastGroups) estimate = estimate_from(context, group_size);
    fill(estimate, result);
    result.attributes.insert(result.attributes.end(), {{"estimator", options_.estimator},
                                                       {"group_size", group_size},
                                                       {"groups", n / group_size},
                                                       {"gradients", passes_}});
  }

  NoiseEstimate estimate_from(const ProbeContext& context, int64_t group_size) {
    Objective& objective = context.objective;
    const int64_t n = objective.examples(), groups = n / group_size;
    at::Generator generator = make_generator(derive_seed(context.seed, "noise-groups"));
    const at::Tensor order = at::randperm(n, generator, at::kLong);
    const bool keep = groups * objective.parameters().size() * 8 <= kKeepBytes;
    std::vector<at::Tensor> kept(groups);
    passes_ = keep ? 1 : 2;

    GradientGroups gradients;
    gradients.examples = n;
    gradients.group_size = group_size;
    gradients.group = [&](int64_t j) {
      if (kept[j].defined()) return kept[j];
      throw_if_interrupted();
      const at::Tensor gradient = objective.gradient_over(order.narrow(0, j * group_size, group_size));
      if (keep) kept[j] = gradient;
      return gradient;
    };
    gradients.rest = [&] {
      return objective.gradient_over(order.narrow(0, groups * group_size, n % group_size));
    };
    return estimate_noise(gradients, context.train_examples);
  }

  static void fill(NoiseEstimate estimate, ProbeResult& result) {
    const bool nonfinite = !estimate.all_finite;
    if (nonfinite) estimate = empty_estimate();
    add_quantities(estimate.population, true, nonfinite, result);
    add_quantities(estimate.finite, false, nonfinite, result);
    result.status = gravest_status(result.quantities);
    const Estimate& g2 = (estimate.population.resolved ? estimate.finite : estimate.population).g2;
    if (nonfinite) {
      result.message = "a gradient was not finite";
    } else if (result.status == "not_resolved" && std::isnan(g2.value)) {
      result.message = fmt::format("fewer than {} examples", kLeastGroups);
    } else if (result.status == "not_resolved") {
      result.message =
          fmt::format("|G|^2 = {:.3g}, 95 % interval {:.3g} to {:.3g}: the mean gradient is not resolved",
                      g2.value, g2.low, g2.high);
    }
  }

  static void add_quantities(const NoiseNumbers& numbers, bool population, bool nonfinite,
                             ProbeResult& result) {
    const std::string gradient_units = "(loss/weight)^2";
    const std::vector<Quantity> quantities = {
        to_quantity("b_simple", "gradient noise scale", "examples", population, numbers.b_simple),
        to_quantity("g2", "squared norm of the mean gradient", gradient_units, population, numbers.g2),
        to_quantity("tr_sigma", "trace of the gradient covariance", gradient_units, population,
                    numbers.tr_sigma)};
    for (Quantity q : quantities) {
      const bool needs_signal = q.name.rfind("tr_sigma", 0) != 0;
      if (nonfinite) {
        q.status = "nonfinite";
      } else if (std::isnan(q.value.front()) || (needs_signal && !numbers.resolved)) {
        q.status = "not_resolved";
      }
      result.quantities.push_back(std::move(q));
    }
  }

  NoiseScaleOptions options_;
  int64_t passes_ = 0;
};

}  // namespace

void bind_options(OptionTable& table, NoiseScaleOptions& options) {
  table.add("estimator", options.estimator, one_of({"paired", "per_example"}),
            "group gradients, or one an example");
  table.add("group_size", options.group_size, at_least(1),
            "examples a group; shrunk until there are 8 groups");
}

std::unique_ptr<Probe> make_noise_scale(const NoiseScaleOptions& options) {
  return std::make_unique<NoiseScale>(options);
}

}  // namespace basin
