#include "hessian/spectrum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "tests/hessian/distributions.h"

namespace basin {
namespace {

using testing::wasserstein;

/// 600 eigenvalues: a bulk, a tail, two negative ones and five outliers.
at::Tensor eigenvalues() {
  return at::cat({at::tensor({-9.0, -4.0}, at::kDouble), at::linspace(-1, 1, 500, at::kDouble),
                  at::linspace(1, 3, 93, at::kDouble),
                  at::tensor({10.0, 14.0, 21.0, 30.0, 60.0}, at::kDouble)});
}

/// A dense symmetric matrix with them, so that sign vectors are no special directions.
struct Matrix {
  explicit Matrix(const at::Tensor& d) {
    at::Generator generator = make_generator(9);
    const int64_t n = d.numel();
    const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({n, n}, generator, at::kDouble)));
    a = q.matmul(at::diag(d)).matmul(q.t());
  }
  FunctionOperator op() {
    return {a.size(0), at::kDouble, [this](const at::Tensor& x) { return ++products, a.matmul(x); }};
  }
  at::Tensor a;
  int64_t products = 0;
};

SpectrumOptions options(uint64_t seed) {
  SpectrumOptions o;
  o.pairs = {.count = 5, .smallest = 1, .tolerance = 1e-3, .seed = seed};
  return o;
}

TEST(SharedSpectrum, CountsEveryProductAndStaysWithinItsBudget) {
  Matrix matrix(eigenvalues());
  auto op = matrix.op();
  const SharedSpectrum spectrum = shared_spectrum(op, options(1));
  EXPECT_EQ(spectrum.products, matrix.products);
  EXPECT_EQ(spectrum.products,
            spectrum.pairs.products + 32);  // 3 starts of 6 steps besides, 14 for the trace
  EXPECT_EQ(spectrum.pairs.status, SolverStatus::converged);
  EXPECT_EQ(spectrum.starts.size(), 4u);
  EXPECT_EQ(spectrum.trace.samples, 3 + 14);
  ASSERT_EQ(spectrum.known.size(), 6u);
  EXPECT_NEAR(spectrum.known.front(), -9, 1e-4);
  EXPECT_NEAR(spectrum.known.back(), 60, 1e-4);
}

TEST(SharedSpectrum, IntervalsCoverTraceFrobeniusNormAndCounts) {
  const at::Tensor d = eigenvalues();
  Matrix matrix(d);
  auto op = matrix.op();
  const double trace = d.sum().item<double>(), squares = d.square().sum().item<double>();
  int trace_covered = 0, squares_covered = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const SharedSpectrum s = shared_spectrum(op, options(seed));
    const double t = student_quantile(static_cast<double>(s.trace.samples - 1));
    trace_covered += std::abs(s.trace.value - trace) <= t * s.trace.standard_error;
    squares_covered +=
        std::abs(s.squared_frobenius.value - squares) <= t * s.squared_frobenius.standard_error;
    EXPECT_NEAR(s.count_above(5).value, 5, 1e-9);  // all of them known pairs
  }
  // Binomial(100, 0.95): 88 or more holds with probability 0.998.
  EXPECT_GE(trace_covered, 88);
  EXPECT_GE(squares_covered, 88);
}

TEST(SharedSpectrum, TracesErrorIsBelowHalfOfHutchinsonsAtEqualCost) {
  // The bulk's share of |A|_F is 0.17, as of a network on 32 examples (docs/curvature.md); a heavier bulk
  // leaves deflation less to gain.
  const at::Tensor d = eigenvalues();
  d.slice(0, 2, 595).mul_(0.5);
  Matrix matrix(d);
  auto op = matrix.op();
  double ours = 0, products = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SharedSpectrum s = shared_spectrum(op, options(seed));
    ours += s.trace.standard_error / 20;
    products += static_cast<double>(s.products) / 20;
  }
  // Hutchinson's variance with sign vectors is 2 (|A|_F^2 - sum of squared diagonal entries), exactly.
  const double variance = 2 * (d.square().sum() - matrix.a.diag().square().sum()).item<double>();
  EXPECT_LT(ours, 0.5 * std::sqrt(variance / products));
}

TEST(SharedSpectrum, DensityIsNearTheExactEigenvaluesInFewProducts) {
  const at::Tensor d = eigenvalues();
  Matrix matrix(d);
  auto op = matrix.op();
  const SharedSpectrum shared = shared_spectrum(op, options(2));
  std::vector<Quadrature> measures = shared.starts;
  const double share = static_cast<double>(shared.known.size()) / 600;
  for (Quadrature& q : measures) {
    for (double& weight : q.weights) weight *= 1 - share;
    for (const double value : shared.known) {
      q.nodes.push_back(value);
      q.weights.push_back(1.0 / 600);
    }
  }
  // The rest spans 7 (from -4 to 3): 12 * 7 / (2 * 6 - 1) = 7.6 by Chen, Trogdon & Ubaru's worst case, as in
  // quadrature_test. Seen: 0.12; plain starts of as many products over the range of 69 do worse.
  EXPECT_LT(wasserstein(measures, d), 0.2);
  std::vector<Quadrature> plain;
  at::Generator generator = make_generator(3);
  for (int i = 0; i < 4; ++i) {
    plain.push_back(lanczos_quadrature(op, at::randn({600}, generator, at::kDouble), shared.products / 4));
  }
  EXPECT_LT(wasserstein(measures, d), wasserstein(plain, d));
}

TEST(SharedSpectrum, DensityIntegratesToOne) {
  Matrix matrix(eigenvalues());
  auto op = matrix.op();
  const SpectralDensity density = shared_spectrum(op, options(4)).density(0.5, 2000);
  double integral = 0;
  for (size_t i = 0; i + 1 < density.grid.size(); ++i)
    integral += density.density[i] * (density.grid[i + 1] - density.grid[i]);
  EXPECT_NEAR(integral, 1, 1e-3);
}

TEST(SharedSpectrum, SmallMatrixIsKnownWhole) {
  const at::Tensor d = at::tensor({3.0, -2.0, 0.5, 7.0}, at::kDouble);
  Matrix matrix(d);
  auto op = matrix.op();
  const SharedSpectrum s = shared_spectrum(op, options(1));
  EXPECT_NEAR(s.trace.value, 8.5, 1e-12);
  EXPECT_NEAR(s.squared_frobenius.value, 62.25, 1e-11);
  EXPECT_EQ(s.trace.standard_error, 0);
  EXPECT_EQ(s.count_above(0).value, 3);
  EXPECT_EQ(s.products, 4);
}

// Two outliers beyond those wanted, near the bulk's edge at 3: six steps lump them together with it.
TEST(SharedSpectrum, CountsNothingAboveAThresholdThatAllWantedPairsPass) {
  const at::Tensor d = at::cat({at::linspace(-1, 1, 500, at::kDouble), at::linspace(1, 3, 93, at::kDouble),
                                at::tensor({3.5, 3.6, 3.7, 10.0, 14.0, 21.0, 60.0}, at::kDouble)});
  Matrix matrix(d);
  auto op = matrix.op();
  SpectrumOptions o = options(1);
  o.pairs.count = 4;
  o.pairs.max_krylov = 14;
  o.pairs.max_restarts = 200;
  const SharedSpectrum few = shared_spectrum(op, o);
  ASSERT_GT(few.pairs.restarts, 0);
  EXPECT_FALSE(few.has_long_start);
  EXPECT_TRUE(few.may_miss(3.3));
  EXPECT_TRUE(std::isnan(few.count_above(3.3).standard_error));
  EXPECT_FALSE(few.may_miss(12));  // 10 is wanted, and below: there are three
  EXPECT_NEAR(few.count_above(12).value, 3, 1e-9);
  EXPECT_EQ(few.count_above(12).standard_error, 0);
}

TEST(SharedSpectrum, SaysThatAProductOfASampleWasNotFinite) {
  Matrix matrix(eigenvalues());
  auto whole = matrix.op();
  const int64_t products = shared_spectrum(whole, options(1)).products;
  for (const int64_t last : {products - 1, products - 20}) {  // of a trace sample, of a start
    int64_t done = 0;
    FunctionOperator op(600, at::kDouble,
                        [&](const at::Tensor& x) { return ++done > last ? x * NAN : matrix.a.matmul(x); });
    const SharedSpectrum s = shared_spectrum(op, options(1));
    EXPECT_EQ(s.pairs.status, SolverStatus::converged);
    EXPECT_FALSE(s.finite) << last;
  }
}

TEST(SharedSpectrum, TrustsNoOperatorThatIsNotSymmetric) {
  Matrix matrix(eigenvalues());
  auto op = matrix.op();
  EXPECT_TRUE(shared_spectrum(op, options(1)).trusted());
  matrix.a[0][1] += 5;
  EXPECT_FALSE(shared_spectrum(op, options(1)).trusted());
}

TEST(SharedSpectrum, NanIsAStatus) {
  FunctionOperator op(100, at::kDouble, [](const at::Tensor& x) { return x * NAN; });
  const SharedSpectrum s = shared_spectrum(op, options(1));
  EXPECT_EQ(s.pairs.status, SolverStatus::nonfinite);
  EXPECT_TRUE(s.starts.empty());
  EXPECT_TRUE(std::isnan(s.trace.value));
}

}  // namespace
}  // namespace basin
