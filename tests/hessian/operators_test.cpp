#include "hessian/operators.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/analytic_models.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

const at::Tensor& matrix() {
  static const at::Tensor a = [] {
    const at::Tensor half = testing::sine_numbers({6, 6});
    return half + half.t();
  }();
  return a;
}

FunctionOperator dense_operator() {
  return FunctionOperator(6, at::kDouble, [](const at::Tensor& x) { return matrix().matmul(x); });
}

TEST(Operators, RestrictionIsTheSubmatrix) {
  auto a = dense_operator();
  const at::Tensor index = at::tensor({1, 3, 4}, at::kLong);
  RestrictedOperator restricted(a, index);
  EXPECT_TRUE(
      at::equal(testing::dense_matrix(restricted), matrix().index_select(0, index).index_select(1, index)));
  EXPECT_THROW(RestrictedOperator(a, at::empty({0}, at::kLong)), ConfigError);
}

TEST(Operators, AffineScalesAndShifts) {
  auto a = dense_operator();
  AffineOperator affine(a, -2, 3);
  EXPECT_TRUE(
      at::allclose(testing::dense_matrix(affine), -2 * matrix() + 3 * at::eye(6, at::kDouble), 0, 1e-14));
}

TEST(Operators, PreconditionedHasTheEigenvaluesOfInversePTimesA) {
  auto a = dense_operator();
  const at::Tensor p = testing::sine_numbers({6}).abs() + 0.1;
  PreconditionedOperator op(a, p);
  const at::Tensor expected =
      std::get<0>(at::sort(at::real(at::linalg_eigvals(at::diag(1 / p).matmul(matrix())))));
  EXPECT_TRUE(at::allclose(at::linalg_eigvalsh(testing::dense_matrix(op)), expected, 1e-10, 1e-10));
  for (const double bad : {0.0, -1.0, std::nan("")}) {
    const at::Tensor broken = p.clone();
    broken[2] = bad;
    EXPECT_THROW(PreconditionedOperator(a, broken), ConfigError) << bad;
  }
}

TEST(Operators, CoordinatesFollowTheFlatVector) {
  const auto model = testing::tiny_mlp();  // 9 -> 8 -> 5 -> 3
  const at::Tensor biases = coordinates_of(
      model->parameter_table(), [](const ParameterInfo& p) { return p.kind == ParameterKind::bias; });
  const at::Tensor expected = at::cat(
      {at::arange(72, 80, at::kLong), at::arange(120, 125, at::kLong), at::arange(140, 143, at::kLong)});
  EXPECT_TRUE(at::equal(biases, expected));
}

}  // namespace
}  // namespace basin
