// Frank-Wolfe searches against every corner of a cube, a dense eigensolver and steps by hand.
#include "hessian/quadratic_maximum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/math/nan.h"
#include "core/seed.h"
#include "tests/support/matrices.h"

namespace basin {
namespace {

at::Tensor in_cube(const at::Tensor& x) { return x.sgn(); }

FunctionOperator dense_operator(const at::Tensor& a) {
  return FunctionOperator(a.size(0), at::kDouble, [a](const at::Tensor& x) { return a.mv(x); });
}

at::Tensor semidefinite(int64_t n, uint64_t seed) {
  const at::Tensor x = at::randn({n, 3}, make_generator(seed), at::kDouble);
  return x.mm(x.t());
}

TEST(QuadraticMaximum, FindsTheBestCornerOfACubeFromSeveralStarts) {
  for (const uint64_t seed : {1, 2, 3}) {
    const at::Tensor a = semidefinite(9, seed);
    FunctionOperator op = dense_operator(a);
    const double largest = testing::largest_corner(a);
    double best = 0;
    at::Generator generator = make_generator(derive_seed(seed, "starts"));
    for (int start = 0; start < 20; ++start) {
      const QuadraticMaximum found =
          maximise_quadratic(op, in_cube, at::randn({9}, generator, at::kDouble), {.tolerance = 1e-9});
      EXPECT_TRUE(found.stationary);
      EXPECT_LE(found.value, largest * (1 + 1e-12)) << "a lower bound";
      EXPECT_LE(found.gap, 1e-9 * found.value);
      best = std::max(best, found.value);
    }
    EXPECT_NEAR(best, largest, 1e-12 * largest);
  }
}

TEST(QuadraticMaximum, InTheEuclideanBallIsTheLargestEigenvalue) {
  const at::Tensor a = semidefinite(6, 4);
  FunctionOperator op = dense_operator(a);
  const auto in_ball = [](const at::Tensor& x) { return x / x.norm(); };
  const QuadraticMaximum found =
      maximise_quadratic(op, in_ball, at::ones({6}, at::kDouble), {.iterations = 2000, .tolerance = 1e-13});
  EXPECT_NEAR(found.value, at::linalg_eigvalsh(a).max().item<double>(), 1e-10);
}

// diag(1, -3) from the corner (1, 1), where it is -2: the line to (1, -1) is highest halfway, at (1, 0), which is the maximum.
TEST(QuadraticMaximum, StopsOnALineWhereTheCurvatureIsNegative) {
  FunctionOperator op = testing::diagonal_operator(at::tensor({1.0, -3.0}, at::kDouble));
  const QuadraticMaximum found = maximise_quadratic(op, in_cube, at::ones({2}, at::kDouble), {});
  EXPECT_DOUBLE_EQ(found.value, 1);
  EXPECT_EQ(found.gap, 0);
  EXPECT_EQ(found.products, 2);
  EXPECT_TRUE(found.stationary);
}

TEST(QuadraticMaximum, NeverFallsAndSaysWhereItWasStillRising) {
  const at::Tensor x = at::randn({12, 12}, make_generator(5), at::kDouble), a = x + x.t();
  FunctionOperator op = dense_operator(a);
  const at::Tensor start = at::randn({12}, make_generator(6), at::kDouble);
  double before = -kInfinity;
  int64_t risen = 0;
  for (int64_t iterations = 1; iterations < 40; ++iterations) {
    const QuadraticMaximum found = maximise_quadratic(op, in_cube, start, {iterations, 1e-12});
    EXPECT_GE(found.value, before - 1e-12);
    EXPECT_LE(found.products, iterations + 1);
    EXPECT_TRUE(found.stationary || found.products == iterations + 1);
    risen += found.value > before + 1e-9;
    before = found.value;
  }
  EXPECT_GT(risen, 2);
  EXPECT_FALSE(maximise_quadratic(op, in_cube, start, {1, 1e-12}).stationary);
}

TEST(QuadraticMaximum, AProductThatIsNotANumberEndsIt) {
  FunctionOperator op = testing::diagonal_operator(at::tensor({1.0, std::nan("")}, at::kDouble));
  const QuadraticMaximum found = maximise_quadratic(op, in_cube, at::ones({2}, at::kDouble), {});
  EXPECT_TRUE(found.nonfinite);
  EXPECT_EQ(found.products, 1);
}

}  // namespace
}  // namespace basin
