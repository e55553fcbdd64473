#include "probes/dual_noise_scale.h"

#include <fmt/format.h>

#include "probes/common.h"
#include "probes/estimators/dual_noise.h"
#include "probes/estimators/random_groups.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

class DualNoiseScale final : public Probe {
 public:
  explicit DualNoiseScale(const DualNoiseScaleOptions& options)
      : Probe("dual_noise_scale"), options_(options) {}

  /// As noise_scale's.
  ProbeCost expected_cost() const override { return {1.3, 0}; }
  std::vector<Answer> needs() const override { return {Answer::batch_gradient}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const int64_t n = context.problem.examples();
    const int64_t group_size = noise_group_size(options_.group_size, n);
    DualNoiseEstimates found{no_dual_noise_estimate(), no_dual_noise_estimate()};
    if (n >= kLeastGroups) {
      found = estimate_dual_noise(random_gradient_groups(context.problem, group_size, context.seed),
                                  context.problem.parameters(), context.train_examples);
    }
    for (const Side side : {Side::population, Side::finite}) {
      add("sign", "l1 norm", found.sign, side, !found.all_finite, result);
      add("spectral", "nuclear norm", found.spectral, side, !found.all_finite, result);
    }
    result.attributes.insert(
        result.attributes.end(),
        {{"group_size", group_size}, {"groups", n / group_size}, {"gradients", int64_t{1}}});
    conclude(n, result);
  }

  static void add(const std::string& name, const std::string& norm, const DualNoiseEstimate& found, Side side,
                  bool nonfinite, ProbeResult& result) {
    const DualNoiseNumbers& numbers = side == Side::population ? found.population : found.finite;
    const auto push = [&](const QuantityNaming& naming, const Estimate& e, bool resolved) {
      result.quantities.push_back(estimated(naming, side, e, status_of(e, resolved, nonfinite)));
    };
    push({"b_" + name, "noise scale of " + name + " descent", name + "-noise-scale", "examples"},
         numbers.scale, numbers.resolved);
    push({"noise_" + name, "noise of single gradients, " + norm, name + "-noise-scale", "loss/weight"},
         numbers.noise, true);
    push({"signal_" + name, norm + " of the mean gradient", name + "-noise-scale", "loss/weight"},
         numbers.signal, numbers.resolved);
  }

  static void conclude(int64_t n, ProbeResult& result) {
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite) {
      result.message = "a gradient was not finite";
    } else if (n < kLeastGroups) {
      result.message = fmt::format("fewer than {} examples", kLeastGroups);
    } else if (result.status == ProbeStatus::not_resolved) {
      result.message = "the mean gradient is not resolved: measure more examples";
    }
  }

  DualNoiseScaleOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, DualNoiseScaleOptions& options) {
  table.add("group_size", options.group_size, at_least(1),
            "examples per group; reduced until there are at least 8 groups");
}

std::unique_ptr<Probe> make_dual_noise_scale(const DualNoiseScaleOptions& options) {
  return std::make_unique<DualNoiseScale>(options);
}

ProbeEntry dual_noise_scale_entry() {
  return probe_entry<DualNoiseScaleOptions, make_dual_noise_scale>({
      .name = "dual_noise_scale",
      .label = "noise scales in dual norms",
      .help = "gradient noise scales for sign and spectral descent",
      .version = 2,
      .definitions = {"sign-noise-scale-population", "sign-noise-scale-finite",
                      "spectral-noise-scale-population", "spectral-noise-scale-finite"},
      .entries = {"b_sign", "noise_sign", "signal_sign", "b_spectral", "noise_spectral", "signal_spectral",
                  "b_sign_finite", "noise_sign_finite", "signal_sign_finite", "b_spectral_finite",
                  "noise_spectral_finite", "signal_spectral_finite"},
      .headlines = {{"b_sign", "", "B_sign (examples)"}, {"b_spectral", "", "B_spectral (examples)"}},
  });
}

}  // namespace basin
