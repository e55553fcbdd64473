#include "probes/noise_scale.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "probes/noise_estimate.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/analytic_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

/// Linear network with mse: g_i = (W x_i - y_i) x_i', known without any differentiation.
struct Known {
  int64_t n = 43;
  at::Tensor x = testing::sine_numbers({n, 5}, 7), labels = at::arange(n).remainder(3),
             w = testing::sine_numbers({3, 5}, 90);
  Objective objective{std::make_shared<testing::LinearModel>(w.clone()), LossKind::mse, x, labels, 10};
  at::Tensor gradients() const {
    const at::Tensor residual = x.matmul(w.t()) - at::one_hot(labels, 3);
    return at::einsum("ic,ij->icj", {residual, x}).flatten(1);
  }
};

TEST(NoiseScale, PerExampleMatchesKnownGradients) {
  Known known;
  const ProbeResult result = run_probe("noise_scale", known.objective, {"estimator=per_example"});
  const at::Tensor g = known.gradients(), mean = g.mean(0);
  const double n = 43, g2 = mean.square().sum().item<double>();
  const double spread = (g - mean).square().sum().item<double>();
  const double trace = spread / (n - 1);  // the usual unbiased variance, summed over coordinates
  EXPECT_NEAR(quantity(result, "tr_sigma").value[0], trace, 1e-12 * trace);
  EXPECT_NEAR(quantity(result, "g2").value[0], g2 - trace / n, 1e-12);
  EXPECT_NEAR(quantity(result, "b_simple").value[0], trace / (g2 - trace / n), 1e-9);
  EXPECT_NEAR(quantity(result, "tr_sigma_finite").value[0], spread / n, 1e-12 * trace);
  EXPECT_NEAR(quantity(result, "g2_finite").value[0], g2, 1e-12);
  EXPECT_EQ(quantity(result, "b_simple_finite").uncertainty_kind, "none");
  // Yin et al.'s gradient diversity on the same set: n Delta = 1 + B, exactly.
  const double diversity = g.square().sum().item<double>() / g.sum(0).square().sum().item<double>();
  EXPECT_NEAR(n * diversity, 1 + quantity(result, "b_simple_finite").value[0], 1e-10);
}

TEST(NoiseScale, PairedIsUnbiasedOverGroupings) {
  // Averaged over random groupings, with three examples left over, the paired trace is the per-example one.
  Known known;
  const at::Tensor g = known.gradients();
  const double expected = (g - g.mean(0)).square().sum().item<double>() / 42;
  at::Tensor traces = at::empty({400}, at::kDouble);
  for (int64_t seed = 0; seed < 400; ++seed) {
    const ProbeResult result = run_probe("noise_scale", known.objective, {"group_size=5"}, seed);
    traces[seed] = quantity(result, "tr_sigma").value[0];
    if (seed == 0) {
      EXPECT_EQ(attribute<int64_t>(result, "groups"), 8);
      EXPECT_NEAR(quantity(result, "g2_finite").value[0], g.mean(0).square().sum().item<double>(), 1e-12);
    }
  }
  const double error = traces.std().item<double>() / 20;
  EXPECT_NEAR(traces.mean().item<double>(), expected, 4 * error);
  EXPECT_LT(error, 0.02 * expected);  // sharp enough to see a factor n/(n-b)
}

TEST(NoiseScale, AtAMinimumTheSignalIsNotResolved) {
  Known known;
  const at::Tensor y = at::one_hot(known.labels, 3).to(at::kDouble);
  known.objective.parameters().scatter(at::linalg_pinv(known.x).matmul(y).t().flatten());
  const ProbeResult result = run_probe("noise_scale", known.objective, {"estimator=per_example"});
  EXPECT_EQ(result.status, "not_resolved");
  EXPECT_EQ(quantity(result, "b_simple").status, "not_resolved");
  EXPECT_LT(quantity(result, "g2").value[0], 0);  // as it comes, not clamped: -tr Sigma / n
  EXPECT_EQ(quantity(result, "tr_sigma").status, "ok");
  EXPECT_TRUE(std::isinf(quantity(result, "b_simple").ci_high[0]));
}

TEST(NoiseScale, TooFewExamplesAreNotResolved) {
  Known known;
  Objective few(std::make_shared<testing::LinearModel>(known.w.clone()), LossKind::mse,
                known.x.slice(0, 0, 5), known.labels.slice(0, 0, 5), 5);
  const ProbeResult result = run_probe("noise_scale", few);
  EXPECT_EQ(result.status, "not_resolved");
  EXPECT_EQ(result.message, "fewer than 8 examples");
  for (const Quantity& q : result.quantities) EXPECT_TRUE(std::isnan(q.value[0]));
}

/// Groups of one from the rows of a matrix.
GradientGroups rows_of(const at::Tensor& g, int64_t group_size = 1) {
  GradientGroups groups;
  groups.examples = g.size(0);
  groups.group_size = group_size;
  groups.group = [g, group_size](int64_t j) { return g.narrow(0, j * group_size, group_size).mean(0); };
  groups.rest = [g, group_size] {
    const int64_t rest = g.size(0) % group_size;
    return g.narrow(0, g.size(0) - rest, rest).mean(0);
  };
  return groups;
}

TEST(NoiseEstimate, JackknifeMatchesLeavingGroupsOutOneByOne) {
  const at::Tensor g = testing::sine_numbers({34, 6}) + 0.4;
  const int64_t b = 3, groups = 11;  // one example left over
  const NoiseEstimate whole = estimate_noise(rows_of(g, b));
  at::Tensor traces = at::empty({groups}, at::kDouble), signals = at::empty({groups}, at::kDouble);
  for (int64_t j = 0; j < groups; ++j) {
    const at::Tensor without = at::cat({g.slice(0, 0, j * b), g.slice(0, (j + 1) * b)});
    const NoiseEstimate left = estimate_noise(rows_of(without, b));
    traces[j] = left.tr_sigma.value;
    signals[j] = left.g2.value;
  }
  const auto error = [&](const at::Tensor& values) {
    return std::sqrt(10.0 / 11 * (values - values.mean()).square().sum().item<double>());
  };
  EXPECT_NEAR(whole.tr_sigma.error, error(traces), 1e-10);
  EXPECT_NEAR(whole.g2.error, error(signals), 1e-10);
}

TEST(NoiseEstimate, IntervalsCoverTheTruth) {
  // Gaussian gradients with mean mu and variances s_k: tr Sigma = sum s, B = sum s / |mu|^2.
  const at::Tensor mu = at::full({20}, 0.25, at::kDouble), s = at::linspace(0.2, 2, 20, at::kDouble);
  const double trace = s.sum().item<double>(), signal = mu.square().sum().item<double>();
  at::Generator generator = make_generator(1);
  int64_t trace_in = 0, signal_in = 0, ratio_in = 0;
  const int64_t repetitions = 400;
  for (int64_t i = 0; i < repetitions; ++i) {
    const at::Tensor g = at::randn({100, 20}, generator, at::kDouble) * s.sqrt() + mu;
    const NoiseEstimate e = estimate_noise(rows_of(g));
    trace_in += e.tr_sigma.low <= trace && trace <= e.tr_sigma.high;
    signal_in += e.g2.low <= signal && signal <= e.g2.high;
    ratio_in += e.b_simple.low <= trace / signal && trace / signal <= e.b_simple.high;
  }
  // 95 % of 400 is 380 with a standard deviation of 4.4; 360 is 90 %, and a wrong factor 2 in a variance
  // gives 83 %.
  EXPECT_GE(trace_in, 360);
  EXPECT_GE(signal_in, 360);
  EXPECT_GE(ratio_in, 360);
  EXPECT_LE(trace_in, 396);
  EXPECT_LE(ratio_in, 398);
}

TEST(NoiseEstimate, WeakSignalIsMostlyNotResolvedAndNeverClamped) {
  const at::Tensor mu = at::full({20}, 0.01, at::kDouble);
  at::Generator generator = make_generator(2);
  int64_t resolved = 0, negative = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const NoiseEstimate e = estimate_noise(rows_of(at::randn({60, 20}, generator, at::kDouble) + mu));
    resolved += e.resolved;
    negative += e.g2.value < 0;
  }
  EXPECT_LE(resolved, 20);
  EXPECT_GE(negative, 60);  // about half of them
}

TEST(NoiseEstimate, FiellerByHand) {
  const Estimate resolved = fieller_ratio(10, 5, 1, 0.25, 0, 2);
  EXPECT_NEAR(resolved.value, 2, 1e-15);
  EXPECT_NEAR(resolved.low, 1.5, 1e-12);       // (10 - 1.5 * 5)^2 = 4 (1 + 1.5^2 / 4)
  EXPECT_NEAR(resolved.high, 8.0 / 3, 1e-12);  // likewise
  EXPECT_NEAR(resolved.error, std::sqrt(1 + 4 * 0.25) / 5, 1e-15);
  const Estimate open = fieller_ratio(10, 0.5, 1, 0.25, 0, 2);
  EXPECT_NEAR(std::pow(10 - open.low * 0.5, 2), 4 * (1 + open.low * open.low * 0.25), 1e-9);
  EXPECT_GT(open.low, 0);
  EXPECT_TRUE(std::isinf(open.high));
  EXPECT_TRUE(std::isnan(open.error));
  const Estimate nothing_known = fieller_ratio(0.5, 0.5, 1, 1, 0, 2);
  EXPECT_EQ(nothing_known.low, 0);
  EXPECT_TRUE(std::isinf(nothing_known.high));
}

TEST(NoiseEstimate, StudentQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(3), 3.1824, 0.005 * 3.1824);
  EXPECT_NEAR(student_quantile(10), 2.2281, 2e-4);
  EXPECT_NEAR(student_quantile(99), 1.9842, 1e-4);
}

}  // namespace
}  // namespace basin
