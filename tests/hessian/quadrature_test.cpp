#include "hessian/quadrature.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "tests/hessian/distributions.h"
#include "tests/support/matrices.h"

namespace basin {
namespace {

using testing::diagonal_operator;
using testing::wasserstein;

at::Tensor gaussian(int64_t n, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return at::randn({n}, generator, at::kDouble);
}

/// 500 eigenvalues: a bulk, a tail to the left and three outliers.
at::Tensor spectrum() {
  return at::cat({at::linspace(-1, 1, 400, at::kDouble), at::linspace(-3, -1, 97, at::kDouble),
                  at::tensor({6.0, 9.0, 20.0}, at::kDouble)});
}

TEST(Quadrature, IsExactForPolynomialsUpToTwiceItsNodes) {
  const at::Tensor d = spectrum();
  auto op = diagonal_operator(d);
  const at::Tensor start = gaussian(500, 1);
  const at::Tensor weights = start.square() / start.square().sum();
  const Quadrature q = lanczos_quadrature(op, start, 6);
  ASSERT_EQ(q.nodes.size(), 6u);
  for (int power = 0; power <= 11; ++power) {
    const double exact = (weights * d.pow(power)).sum().item<double>();
    // 20^11 = 2e14 among the terms: relative to the largest of them.
    EXPECT_NEAR(q.moment(power), exact, 1e-12 * std::pow(20.0, power)) << power;
  }
  const double beyond = (weights * d.pow(12)).sum().item<double>();
  EXPECT_GT(std::abs(q.moment(12) - beyond), 1e-9 * beyond);  // and no further
}

TEST(Quadrature, BreaksDownToTheExactAnswer) {
  auto op = diagonal_operator(at::cat({at::full({50}, 2.0, at::kDouble), at::full({50}, -1.0, at::kDouble)}));
  const Quadrature q = lanczos_quadrature(op, at::ones({100}, at::kDouble), 30);
  ASSERT_EQ(q.nodes.size(), 2u);
  EXPECT_NEAR(q.nodes[0], -1, 1e-12);
  EXPECT_NEAR(q.nodes[1], 2, 1e-12);
  EXPECT_NEAR(q.mass_above(0), 0.5, 1e-12);
}

TEST(Quadrature, IsEmptyWhereAProductIsNotFinite) {
  auto op = diagonal_operator(at::full({10}, NAN, at::kDouble));
  EXPECT_TRUE(lanczos_quadrature(op, at::ones({10}, at::kDouble), 3).nodes.empty());
}

TEST(Quadrature, DensityIsNearTheExactEigenvalues) {
  const at::Tensor d = spectrum();
  auto op = diagonal_operator(d);
  std::vector<Quadrature> starts;
  for (uint64_t seed = 0; seed < 8; ++seed) starts.push_back(lanczos_quadrature(op, gaussian(500, seed), 40));
  // Chen, Trogdon & Ubaru (ICML 2021, theorem 1): at most 12 range / (2 m - 1)  = 3.5 from m = 40 steps over
  // a range of 23, and a sampling part of order range sqrt(1 / (n starts)) = 0.36. Seen: below a tenth of
  // their sum.
  EXPECT_LT(wasserstein(starts, d), 0.36);
  EXPECT_LT(wasserstein(starts, d), wasserstein({lanczos_quadrature(op, gaussian(500, 0), 4)}, d));
}

TEST(SpectralDensity, IntegratesToOneAndItsBandCoversTheTruth) {
  const at::Tensor d = spectrum();
  auto op = diagonal_operator(d);
  std::vector<Quadrature> starts;
  for (uint64_t seed = 0; seed < 10; ++seed)
    starts.push_back(lanczos_quadrature(op, gaussian(500, seed), 60));
  const double width = 0.5;
  const SpectralDensity density = spectral_density(starts, width, 400);
  double integral = 0;
  int64_t covered = 0;
  for (size_t i = 0; i + 1 < density.grid.size(); ++i)
    integral += density.density[i] * (density.grid[i + 1] - density.grid[i]);
  for (size_t i = 0; i < density.grid.size(); ++i) {
    const at::Tensor z = (density.grid[i] - d) / width;
    const double exact = at::exp(-0.5 * z.square()).mean().item<double>() / (width * std::sqrt(2 * M_PI));
    covered += std::abs(density.density[i] - exact) <= 2.26 * density.standard_error[i] + 1e-9;
  }
  EXPECT_NEAR(integral, 1, 1e-3);  // Riemann sum of 400 points, tails beyond four widths
  // t(9) at 95 %; neighbouring points err together, so the share is not binomial: 80 % leaves room for that.
  EXPECT_GE(covered, 320);
}

}  // namespace
}  // namespace basin
