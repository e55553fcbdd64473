// Noise scales in dual norms: exact on a set whose gradients are known, and from draws whose truth is.
#include "probes/dual_noise_scale.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "probes/estimators/dual_noise.h"
#include "tests/probes/known_gradients.h"
#include "tests/probes/probe_fixture.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::row_groups;
using testing::run_probe;

struct Known : testing::KnownGradients {
  explicit Known(int64_t n = 43) : KnownGradients(at::randn({n, 5}, make_generator(3), at::kDouble)) {}
};

double sum_of(const at::Tensor& x) { return x.sum().item<double>(); }

// Singular values in place of the eigenvalues of a sum of squares.
TEST(DualNoiseScale, OfTheWholeSetFromSingleGradientsIsExact) {
  Known known;
  const at::Tensor g = known.gradients(), mean = g.mean(0), apart = g - mean;
  const double n = 43;
  const ProbeResult result = run_probe("dual_noise_scale", known.objective, {"group_size=1"});
  EXPECT_EQ(attribute<int64_t>(result, "groups"), 43);

  const double deviations = sum_of(apart.square().mean(0).sqrt()), l1 = sum_of(mean.abs());
  EXPECT_NEAR(quantity(result, "noise_sign_finite").value[0], deviations, 1e-12);
  EXPECT_NEAR(quantity(result, "signal_sign_finite").value[0], l1, 1e-12);
  EXPECT_NEAR(quantity(result, "b_sign_finite").value[0], std::pow(deviations / l1, 2), 1e-9);

  // tr (1/n sum_i N_i N_i')^(1/2) is the sum of singular values of all N_i next to each other, over sqrt(n).
  const at::Tensor beside = apart.reshape({43, 3, 5}).permute({1, 0, 2}).reshape({3, -1});
  const double noise = sum_of(at::linalg_svdvals(beside)) / std::sqrt(n);
  const double nuclear = sum_of(at::linalg_svdvals(mean.reshape({3, 5})));
  EXPECT_NEAR(quantity(result, "noise_spectral_finite").value[0], noise, 1e-10);
  EXPECT_NEAR(quantity(result, "signal_spectral_finite").value[0], nuclear, 1e-10);
  EXPECT_NEAR(quantity(result, "b_spectral_finite").value[0], std::pow(noise / nuclear, 2), 1e-9);
  for (const char* name : {"b_sign_finite", "noise_spectral_finite", "signal_sign_finite"})
    EXPECT_EQ(quantity(result, name).uncertainty_kind, UncertaintyKind::none) << name;
  // As draws from a distribution the same gradients leave the signal open.
  const Quantity& drawn = quantity(result, "b_sign");
  EXPECT_LT(drawn.ci_low[0], drawn.value[0]);
  EXPECT_GT(drawn.ci_high[0], drawn.value[0]);
}

// A part of the set: noise of N shrinks by sqrt((N - 1) / N), and the signal is as little known as that of a distribution.
TEST(DualNoiseScale, OfAPartIsNotExact) {
  Known known;
  const ProbeResult result = run_probe("dual_noise_scale", known.objective, {"group_size=1"}, 11, 200);
  EXPECT_NEAR(quantity(result, "noise_sign_finite").value[0],
              quantity(result, "noise_sign").value[0] * std::sqrt(199.0 / 200), 1e-12);
  EXPECT_EQ(quantity(result, "signal_sign_finite").ci_low, quantity(result, "signal_sign").ci_low);
  EXPECT_EQ(quantity(result, "b_sign_finite").uncertainty_kind, UncertaintyKind::standard_error);
}

TEST(DualNoiseScale, AtAMinimumTheSignalIsNotResolved) {
  Known known;
  const at::Tensor y = at::one_hot(known.labels, 3).to(at::kDouble);
  known.objective.parameters().scatter(at::linalg_pinv(known.x).matmul(y).t().flatten());
  const ProbeResult result = run_probe("dual_noise_scale", known.objective);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(result, "b_sign").status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isinf(quantity(result, "b_sign").ci_high[0]));
  EXPECT_EQ(quantity(result, "noise_sign").status, ProbeStatus::ok);
}

TEST(DualNoiseScale, TooFewExamplesAreNotResolved) {
  Known known(5);
  const ProbeResult result = run_probe("dual_noise_scale", known.objective);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "fewer than 8 examples");
  for (const Quantity& q : result.quantities) EXPECT_TRUE(std::isnan(q.value[0])) << q.name;
}

/// Normal gradients of a matrix [4, 6] and a bias [3]: entries of one standard deviation, means of several sizes, half of them none.
struct Draws {
  static constexpr double kDeviation = 0.8;
  ParameterVector vector{{{"a.weight", "a", ParameterKind::weight, at::zeros({4, 6}, at::kDouble)},
                          {"a.bias", "a", ParameterKind::bias, at::zeros({3}, at::kDouble)}}};
  at::Tensor mean = (at::arange(27, at::kDouble) - 13).clamp_min(0).mul(0.03);
  at::Generator generator = make_generator(2);

  at::Tensor rows(int64_t n) { return at::randn({n, 27}, generator, at::kDouble) * kDeviation + mean; }
  double sign_noise() const { return 27 * kDeviation; }
  double sign_signal() const { return sum_of(mean.abs()); }
  /// E N N' = 6 s^2 I of four rows.
  double spectral_noise() const { return 4 * std::sqrt(6) * kDeviation; }
  double spectral_signal() const { return sum_of(at::linalg_svdvals(mean.narrow(0, 0, 24).reshape({4, 6}))); }
};

struct Coverage {
  int64_t noise = 0, signal = 0, scale = 0;
  double noise_sum = 0, noise_squares = 0, error_sum = 0;
  void add(const DualNoiseNumbers& found, double true_noise, double true_signal) {
    const double ratio = true_noise / true_signal, b = ratio * ratio;
    noise += found.noise.low <= true_noise && true_noise <= found.noise.high;
    signal += found.signal.low <= true_signal && true_signal <= found.signal.high;
    scale += found.scale.low <= b && b <= found.scale.high;
    noise_sum += found.noise.value;
    noise_squares += found.noise.value * found.noise.value;
    error_sum += found.noise.error;
  }
};

TEST(DualNoise, IntervalsCoverTheTruthAndTheNoiseHasNoBias) {
  constexpr int64_t kTimes = 300;
  for (const int64_t b : {1, 10}) {
    SCOPED_TRACE(b);
    Draws draws;
    Coverage sign, spectral;
    for (int64_t i = 0; i < kTimes; ++i) {
      const DualNoiseEstimates e = estimate_dual_noise(row_groups(draws.rows(205), b), draws.vector, 205);
      sign.add(e.sign.population, draws.sign_noise(), draws.sign_signal());
      spectral.add(e.spectral.population, draws.spectral_noise(), draws.spectral_signal());
    }
    for (const auto& [c, noise] : {std::pair{sign, draws.sign_noise()}, {spectral, draws.spectral_noise()}}) {
      // 95 % of 300 is 285 with a standard deviation of 3.8; 273 is 91 %. Intervals of signal and scale hold two estimates and cover
      // no less.
      EXPECT_GE(c.noise, 273);
      EXPECT_LE(c.noise, 298);
      EXPECT_GE(c.signal, 273);
      EXPECT_GE(c.scale, 273);
      const double mean = c.noise_sum / kTimes;
      const double spread = std::sqrt((c.noise_squares / kTimes - mean * mean) * kTimes / (kTimes - 1));
      // Without the correction the noise from 20 groups is 1.3 % too small: 8 standard errors of this mean.
      EXPECT_NEAR(mean, noise, 4 * spread / std::sqrt(kTimes));
      EXPECT_NEAR(c.error_sum / kTimes / spread, 1, 0.15);  // a spread of 300 is known to 4 %
    }
  }
}

TEST(DualNoise, OfNoSignalIsNotResolvedOftenerThanItSays) {
  Draws draws;
  draws.mean.zero_();
  int64_t sign = 0, spectral = 0;
  for (int64_t i = 0; i < 400; ++i) {
    const DualNoiseEstimates e = estimate_dual_noise(row_groups(draws.rows(205), 10), draws.vector, 205);
    sign += e.sign.population.resolved ? 1 : 0;
    spectral += e.spectral.population.resolved ? 1 : 0;
  }
  // 2.5 % of 400 are 10 with a standard deviation of 3.1.
  EXPECT_LE(sign, 20);
  EXPECT_LE(spectral, 20);
}

TEST(DualNoise, NearsTheTruthWithMoreExamples) {
  Draws draws;
  const DualNoiseEstimates e =
      estimate_dual_noise(row_groups(draws.rows(100'000), 100), draws.vector, 100'000);
  const double sign = std::pow(draws.sign_noise() / draws.sign_signal(), 2);
  const double spectral = std::pow(draws.spectral_noise() / draws.spectral_signal(), 2);
  EXPECT_NEAR(e.sign.population.scale.value, sign, 0.03 * sign);
  EXPECT_NEAR(e.spectral.population.scale.value, spectral, 0.03 * spectral);
  EXPECT_LT(e.sign.population.scale.high - e.sign.population.scale.low, 0.2 * sign);
}

TEST(DualNoise, RefusesASetSmallerThanItsPart) {
  Draws draws;
  EXPECT_THROW(estimate_dual_noise(row_groups(draws.rows(10)), draws.vector, 9), ConfigError);
}

}  // namespace
}  // namespace basin
