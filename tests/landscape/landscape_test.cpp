#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "landscape/box.h"
#include "landscape/box_maximum.h"
#include "landscape/random_subspace.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using D = SubspaceDistribution;

at::Tensor numbers(int64_t n, double phase) { return at::sin(at::arange(n, at::kDouble) * 1.7 + phase); }

TEST(RandomSubspace, GaussianEntriesHaveUnitVariance) {
  const RandomSubspace a(4000, 20, D::gaussian, 3, at::kDouble, at::kCPU);
  // 80,000 draws: mean and variance are within five standard errors, 1/sqrt(80000) and sqrt(2/80000).
  EXPECT_NEAR(a.matrix().mean().item<double>(), 0, 0.018);
  EXPECT_NEAR(a.matrix().square().mean().item<double>(), 1, 0.025);
}

TEST(RandomSubspace, OrthonormalColumns) {
  const RandomSubspace a(300, 20, D::orthonormal, 3, at::kDouble, at::kCPU);
  const at::Tensor gram = a.matrix().t().matmul(a.matrix());
  EXPECT_LT((gram - at::eye(20, at::kDouble)).abs().max().item<double>(), 1e-13);
}

TEST(RandomSubspace, ProductsAndPseudoInverse) {
  for (const D distribution : {D::gaussian, D::orthonormal}) {
    const RandomSubspace a(200, 12, distribution, 1, at::kDouble, at::kCPU);
    const at::Tensor x = numbers(200, 1), y = numbers(12, 2);
    EXPECT_LT((a.expand(y) - a.matrix().matmul(y)).norm().item<double>(), 1e-12);
    EXPECT_LT((a.project(x) - a.matrix().t().matmul(x)).norm().item<double>(), 1e-12);
    const at::Tensor by_svd = at::linalg_pinv(a.matrix()).matmul(x);  // LAPACK's, by singular values
    EXPECT_LT((a.coordinates(x) - by_svd).norm().item<double>(), 1e-12);
    EXPECT_LT((a.coordinates(a.expand(y)) - y).norm().item<double>(), 1e-12);
  }
}

TEST(RandomSubspace, CoordinatesOfManyRowsGoInPieces) {
  const int64_t n = 70000;  // more than one piece of 65,536 rows
  const RandomSubspace a(n, 3, D::gaussian, 5, at::kFloat, at::kCPU);
  const at::Tensor y = at::tensor({0.5, -2.0, 1.0}, at::kDouble);
  EXPECT_LT((a.coordinates(a.expand(y)) - y).norm().item<double>(), 1e-6);  // float32 rounding of A y
}

TEST(RandomSubspace, SeedNamesTheMatrix) {
  const auto draw = [](uint64_t seed) {
    return RandomSubspace(50, 4, D::gaussian, seed, at::kFloat, at::kCPU).matrix();
  };
  EXPECT_TRUE(at::equal(draw(1), draw(1)));
  EXPECT_FALSE(at::equal(draw(1), draw(2)));
}

TEST(RandomSubspace, SeedNamesOneMatrixForEveryType) {
  for (const D distribution : {D::gaussian, D::orthonormal}) {
    const RandomSubspace exact(70000, 2, distribution, 4, at::kDouble, at::kCPU);
    const RandomSubspace single(70000, 2, distribution, 4, at::kFloat, at::kCPU);
    EXPECT_TRUE(at::equal(single.matrix(), exact.matrix().to(at::kFloat)));
  }
  const at::Tensor two_pieces = RandomSubspace(70000, 2, D::gaussian, 4, at::kDouble, at::kCPU).matrix();
  EXPECT_FALSE(at::equal(two_pieces.narrow(0, 0, 4000), two_pieces.narrow(0, 1 << 16, 4000)));
}

TEST(RandomSubspace, RefusesWhatDoesNotFitBeforeItAllocates) {
  EXPECT_THAT(testing::message_of([] {
                const RandomSubspace large(int64_t{1} << 27, 100, D::gaussian, 1, at::kFloat, at::kCPU);
              }),
              ::testing::HasSubstr("subspace_dim"));
}

TEST(RandomSubspace, RefusesMoreColumnsThanRows) {
  EXPECT_THROW(RandomSubspace(5, 6, D::gaussian, 1, at::kFloat, at::kCPU), ConfigError);
  EXPECT_THROW(subspace_distribution("uniform"), ConfigError);
  EXPECT_EQ(subspace_distribution(to_string(D::orthonormal)), D::orthonormal);
}

TEST(Box, HalfWidths) {
  const at::Tensor x = at::tensor({-3.0, 0.0, 0.5}, at::kDouble);
  EXPECT_TRUE(at::allclose(keskar_box(x, 1e-3), at::tensor({4e-3, 1e-3, 1.5e-3}, at::kDouble), 1e-15, 0));
  EXPECT_TRUE(at::allclose(relative_box(x, 1e-3), at::tensor({3e-3, 0.0, 5e-4}, at::kDouble), 1e-15, 0));
}

TEST(BoxMaximum, ConvexQuadraticEndsInACorner) {
  const at::Tensor h = at::linspace(0.1, 3, 40, at::kDouble);
  const CubeFunction f = [&](const at::Tensor& u, at::Tensor& g) {
    g = h * u;
    return 0.5 * (h * u * u).sum().item<double>();
  };
  for (const double size : {1e-9, 1.0, 1e9}) {  // the flatness of f must not matter
    const CubeFunction scaled = [&](const at::Tensor& u, at::Tensor& g) {
      const double value = f(u, g);
      g = g * size;
      return value * size;
    };
    const CubeMaximum found = maximise_in_cube(scaled, numbers(40, 0.3), 10);
    EXPECT_NEAR(found.value / size, 0.5 * h.sum().item<double>(), 1e-9);  // every |u_i| = 1
    EXPECT_LE(found.point.abs().max().item<double>(), 1);
    EXPECT_LE(found.evaluations, 25);
  }
}

// In a small box a network's loss is a line with a little curvature, with derivatives of all sizes. The maximum of
// this one is known: each coordinate by itself, at an end or at g / -h.
TEST(BoxMaximum, TenIterationsReachTheMaximumOfANearlyLinearFunctionFromEverywhere) {
  const int64_t p = 2000;
  const at::Tensor h = numbers(p, 0.9).mul(17).cos().mul(0.05), slope = numbers(p, 0.2).mul(30).sin().pow(5);
  const at::Tensor g =
      slope + slope.sgn() * 2 * h.clamp_min(0);  // so that no coordinate has a second maximum
  const CubeFunction f = [&](const at::Tensor& u, at::Tensor& gradient) {
    gradient = g + h * u;
    return (g * u + 0.5 * h * u * u).sum().item<double>();
  };
  const at::Tensor ends = g.abs() + 0.5 * h, inside = -0.5 * g * g / h;
  const double maximum = at::where((h < 0) & (g.abs() < -h), inside, ends).sum().item<double>();
  for (const at::Tensor& start : {g.sgn(), g.sgn() * 0.5, numbers(p, 0.4).mul(50).sin()}) {
    const CubeMaximum found = maximise_in_cube(f, start, 10);
    // SciPy's L-BFGS-B on f itself ends within 2e-6 (tests/oracles/box_search.py); with first steps in proportion to
    // the derivatives ours ended 1e-3 low from inside.
    EXPECT_NEAR(found.value, maximum, 1e-5 * maximum);
    EXPECT_LE(found.value, maximum * (1 + 1e-12));  // rounding of the sum
  }
}

TEST(BoxMaximum, ConcaveQuadraticEndsInside) {
  const at::Tensor top = numbers(10, 0.7) * 1.5;  // some coordinates of the summit lie outside the cube
  const at::Tensor h = at::linspace(1, 4, 10, at::kDouble);
  const CubeFunction f = [&](const at::Tensor& u, at::Tensor& g) {
    g = -h * (u - top);
    return -0.5 * (h * (u - top).square()).sum().item<double>();
  };
  const CubeMaximum found = maximise_in_cube(f, at::zeros({10}, at::kDouble), 50);
  EXPECT_LT((found.point - top.clamp(-1, 1)).norm().item<double>(), 1e-5);
}

TEST(BoxMaximum, ACornerThatIsTheMaximumNeedsNoIteration) {
  const CubeFunction f = [](const at::Tensor& u, at::Tensor& g) {
    g = at::ones_like(u);
    return u.sum().item<double>();
  };
  const CubeMaximum found = maximise_in_cube(f, at::ones({7}, at::kDouble), 10);
  EXPECT_EQ(found.value, 7);
  EXPECT_EQ(found.iterations, 0);
  EXPECT_EQ(found.evaluations, 1);
  EXPECT_EQ(found.stall, "");
  EXPECT_EQ(maximise_in_cube(f, at::zeros({7}, at::kDouble), 10).iterations, 1);
}

TEST(BoxMaximum, StartAtACriticalPointStaysThere) {
  const CubeFunction f = [](const at::Tensor& u, at::Tensor& g) {
    g = u.clone();
    return 0.5 * u.square().sum().item<double>();
  };
  const CubeMaximum found = maximise_in_cube(f, at::zeros({5}, at::kDouble), 10);
  EXPECT_EQ(found.value, 0);  // the trap that the probe's starts avoid
  EXPECT_EQ(found.evaluations, 1);
}

TEST(BoxMaximum, NonfiniteValuesEndTheSearchWithAFlag) {
  const CubeFunction f = [](const at::Tensor& u, at::Tensor& g) {
    g = at::ones_like(u);
    const double sum = u.sum().item<double>();
    return sum > 1 ? std::numeric_limits<double>::infinity() : sum;
  };
  const CubeMaximum found = maximise_in_cube(f, at::zeros({5}, at::kDouble), 10);
  EXPECT_TRUE(found.nonfinite);
  EXPECT_LE(found.value, 1);
}

TEST(BoxMaximum, ExceptionsOfTheFunctionComeThrough) {
  int calls = 0;
  const CubeFunction f = [&](const at::Tensor& u, at::Tensor& g) {
    if (++calls == 2) throw DataError("gone");
    g = u.clone();
    return 0.5 * u.square().sum().item<double>();
  };
  EXPECT_THROW(maximise_in_cube(f, numbers(50, 0.1) * 0.01, 10), DataError);
}

TEST(BoxMaximum, KeepsTheBestPointWhereTheLineSearchGivesUp) {
  // A sawtooth with a gradient that lies about it: no step satisfies the Wolfe conditions.
  const CubeFunction f = [](const at::Tensor& u, at::Tensor& g) {
    g = at::ones_like(u);
    return -u.square().sum().item<double>();
  };
  const CubeMaximum found = maximise_in_cube(f, at::zeros({4}, at::kDouble), 10);
  EXPECT_FALSE(found.stall.empty());
  EXPECT_EQ(found.iterations, 0);
  EXPECT_EQ(found.value, 0);
}

}  // namespace
}  // namespace basin
