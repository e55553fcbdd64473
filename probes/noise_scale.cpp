#include "probes/noise_scale.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "hessian/gradients/per_example_gradients.h"
#include "probes/common.h"
#include "probes/estimators/noise_estimate.h"
#include "probes/estimators/random_groups.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr int64_t kKeepBytes = int64_t{512} << 20;

class NoiseScale final : public Probe {
 public:
  explicit NoiseScale(const NoiseScaleOptions& options) : Probe("noise_scale"), options_(options) {}

  /// One pass, in groups so small that they take longer than their share.
  ProbeCost expected_cost() const override { return {1.3, 0}; }
  std::vector<Answer> needs() const override { return {Answer::batch_gradient}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const int64_t n = context.problem.examples();
    const bool single = options_.estimator == "per_example";
    const int64_t group_size = single ? 1 : noise_group_size(options_.group_size, n);
    NoiseEstimate estimate = no_noise_estimate();
    if (n >= kLeastGroups) estimate = single ? by_examples(context) : by_groups(context, group_size);
    fill(estimate, result);
    result.attributes.insert(result.attributes.end(), {{"estimator", options_.estimator},
                                                       {"group_size", group_size},
                                                       {"groups", n / group_size},
                                                       {"gradients", passes_}});
  }

  NoiseEstimate by_examples(const ProbeContext& context) {
    passes_ = 2;
    PerExampleGradients gradients(context.problem);
    const ExampleSums sums = gradients.sums();
    const at::Tensor along = gradients.products({{sums.mean}}).front();
    return estimate_noise(
        example_products(sums.squared_norms.sum(1), along.sum(1), sums.mean.square().sum().item<double>()),
        context.train_examples);
  }

  NoiseEstimate by_groups(const ProbeContext& context, int64_t group_size) {
    GradientGroups gradients = random_gradient_groups(context.problem, group_size, context.seed);
    const bool keep = gradients.groups() * context.problem.parameters().size() * 8 <= kKeepBytes;
    passes_ = keep ? 1 : 2;
    if (keep) {
      gradients.group = [compute = gradients.group,
                         kept = std::vector<at::Tensor>(gradients.groups())](int64_t j) mutable {
        if (!kept[j].defined()) kept[j] = compute(j);
        return kept[j];
      };
    }
    return estimate_noise(gradients, context.train_examples);
  }

  static void fill(NoiseEstimate estimate, ProbeResult& result) {
    const bool nonfinite = !estimate.all_finite;
    if (nonfinite) estimate = no_noise_estimate();
    result.quantities = noise_quantities(estimate.population, Side::population, nonfinite);
    for (Quantity& q : noise_quantities(estimate.finite, Side::finite, nonfinite))
      result.quantities.push_back(std::move(q));
    result.status = gravest_status(result.quantities);
    if (nonfinite) {
      result.message = "a gradient was not finite";
    } else if (result.status == ProbeStatus::not_resolved) {
      result.message = unresolved_message(estimate);
    }
  }

  NoiseScaleOptions options_;
  int64_t passes_ = 0;
};

}  // namespace

void bind_options(OptionTable& table, NoiseScaleOptions& options) {
  table.add("estimator", options.estimator, one_of({"paired", "per_example"}),
            "use gradients of groups of examples, or of single examples");
  table.add("group_size", options.group_size, at_least(1),
            "examples per group; reduced until there are at least 8 groups");
}

std::unique_ptr<Probe> make_noise_scale(const NoiseScaleOptions& options) {
  return std::make_unique<NoiseScale>(options);
}

ProbeEntry noise_scale_entry() {
  return probe_entry<NoiseScaleOptions, make_noise_scale>({
      .name = "noise_scale",
      .label = "gradient noise scale",
      .help = "gradient noise scale tr Sigma / |G|^2",
      .version = 3,
      .definitions = {"noise-scale-population", "noise-scale-finite"},
      .entries = {"b_simple", "g2", "tr_sigma", "b_simple_finite", "g2_finite", "tr_sigma_finite"},
      .headlines = {{"b_simple", "B_simple [95 %]", "B_simple (examples)"}},
      .ratios = {{"b_simple", "tr_sigma", "g2"}},
  });
}

}  // namespace basin
