// gaussian_product() against products that are known in closed form.
#include "trainers/workers/gaussian_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace basin::testing {
namespace {

/// Rows of a chain whose covariance, divided by m - 1, is diag(variances): a positive and a negative step along each axis.
at::Tensor around(const std::vector<double>& centre, const std::vector<double>& variances) {
  const auto n = static_cast<int64_t>(centre.size());
  const at::Tensor rows = at::tensor(centre, at::kDouble).repeat({2 * n, 1});
  for (int64_t i = 0; i < n; ++i) {
    const double step = std::sqrt(variances[static_cast<size_t>(i)] * static_cast<double>(2 * n - 1) / 2);
    rows[2 * i][i] += step;
    rows[2 * i + 1][i] -= step;
  }
  return rows;
}

// By hand: along each axis the centres weighted by their inverse variances, (0/1 + 3/4)/(1 + 1/4) and (2/4 + 0/1)/(1/4 + 1).
// The ridge of 1e-6 moves them by about as much.
TEST(GaussianProduct, WeighsCentresByTheirPrecision) {
  const GaussianProduct product = gaussian_product({around({0, 2}, {1, 4}), around({3, 0}, {4, 1})}, 2);
  EXPECT_EQ(product.directions, 2);
  EXPECT_NEAR(product.centre[0].item<double>(), 0.6, 1e-5);
  EXPECT_NEAR(product.centre[1].item<double>(), 0.4, 1e-5);
}

// Axes turned by a rotation turn the answer with them.
TEST(GaussianProduct, DoesntDependOnTheAxes) {
  const double c = std::cos(0.7), s = std::sin(0.7);
  const at::Tensor turn = at::tensor({c, s, -s, c}, at::kDouble).view({2, 2});
  const at::Tensor first = around({0, 2}, {1, 4}), second = around({3, 0}, {4, 1});
  const at::Tensor turned = gaussian_product({first.mm(turn), second.mm(turn)}, 2).centre;
  EXPECT_TRUE(at::allclose(turned, gaussian_product({first, second}, 2).centre.matmul(turn), 1e-8, 1e-8));
}

// The chains move along the first axis alone: the second is outside of the subspace, and there the mean is taken.
TEST(GaussianProduct, IsTheMeanOutsideOfTheSubspace) {
  const at::Tensor first = at::tensor({-1.0, 5.0, 1.0, 5.0}, at::kDouble).view({2, 2});
  const at::Tensor second = at::tensor({2.0, 1.0, 6.0, 1.0}, at::kDouble).view({2, 2});  // variances 2 and 8
  const GaussianProduct product = gaussian_product({first, second}, 8);
  EXPECT_EQ(product.directions, 1);
  EXPECT_NEAR(product.centre[0].item<double>(), (0.0 / 2 + 4.0 / 8) / (1.0 / 2 + 1.0 / 8), 1e-5);
  EXPECT_NEAR(product.centre[1].item<double>(), 3, 1e-12);
}

TEST(GaussianProduct, IsTheMeanWhereNothingMoves) {
  const GaussianProduct product =
      gaussian_product({at::ones({3, 2}, at::kDouble), at::zeros({3, 2}, at::kDouble)}, 4);
  EXPECT_EQ(product.directions, 0);
  EXPECT_TRUE(product.centre.equal(at::full({2}, 0.5, at::kDouble)));
}

TEST(GaussianProduct, IsTheMeanWhereOneChainDoesntMove) {
  const GaussianProduct product =
      gaussian_product({around({0, 2}, {1, 4}), at::full({4, 2}, 3.0, at::kDouble)}, 2);
  EXPECT_EQ(product.directions, 0);
  EXPECT_TRUE(at::allclose(product.centre, at::tensor({1.5, 2.5}, at::kDouble), 1e-12));
}

}  // namespace
}  // namespace basin::testing
