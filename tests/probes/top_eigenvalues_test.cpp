#include "probes/top_eigenvalues.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hessian/curvature_operator.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/analytic_models.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

TEST(TopEigenvaluesProbe, LeastSquaresInClosedForm) {
  // H = I_2 (x) X'X/n: every eigenvalue of X'X/n twice; with X diagonal they are d_i^2 / n.
  const at::Tensor d = at::arange(1, 21, at::kDouble), labels = at::arange(20).remainder(2);
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({2, 20})), LossKind::mse,
                      at::diag(d), labels, 7);
  const ProbeResult result = run_probe("top_eigenvalues", objective, {"count=3", "tolerance=1e-8"});
  EXPECT_EQ(result.status, ProbeStatus::ok);
  const Quantity& lambda = quantity(result, "lambda");
  ASSERT_EQ(lambda.value.size(), 3u);
  EXPECT_NEAR(lambda.value[0], 20, 1e-9);
  EXPECT_NEAR(lambda.value[1], 20, 1e-9);
  EXPECT_NEAR(lambda.value[2], 18.05, 1e-9);
  EXPECT_NEAR(quantity(result, "lambda_min").value[0], 0.05, 1e-9);
  const double w2 = testing::sine_numbers({2, 20}).square().sum().item<double>();
  EXPECT_NEAR(quantity(result, "lambda_1_w2").value[0], 20 * w2, 1e-8);
  EXPECT_DOUBLE_EQ(quantity(result, "lambda_1_w2").uncertainty[0], lambda.uncertainty[0] * w2);
  EXPECT_NEAR(attribute<double>(result, "weight_norm"), std::sqrt(w2), 1e-12);
  EXPECT_GE(attribute<int64_t>(result, "hvps"),
            3);  // counted exactly in TopEigenpairs.CountsTheProductsItTakes
}

TEST(TopEigenvaluesProbe, StoredResidualCoversTheErrorInFloat32) {
  const auto batch = testing::tiny_batch(testing::tiny_image_shape(), 24, 1, at::kDouble);
  Objective exact(testing::tiny_model("small_cnn"), LossKind::cross_entropy, batch.images, batch.labels, 24);
  Objective single(testing::tiny_model("small_cnn", {}, 1, at::kFloat), LossKind::cross_entropy, batch.images,
                   batch.labels, 10);
  CurvatureOperator hessian(exact, Curvature::hessian);
  const at::Tensor spectrum = at::linalg_eigvalsh(testing::dense_matrix(hessian));
  const int64_t n = hessian.size();
  const ProbeResult result = run_probe("top_eigenvalues", single, {"count=2", "tolerance=1e-3"});
  EXPECT_EQ(result.status, ProbeStatus::ok);
  const double float32 =
      1e-5 * spectrum[n - 1].item<double>();  // an HVP's own error: some ten roundings of 6e-8
  for (int64_t i = 0; i < 2; ++i) {
    const Quantity& lambda = quantity(result, "lambda");
    EXPECT_NEAR(lambda.value[i], spectrum[n - 1 - i].item<double>(), lambda.uncertainty[i] + float32);
    EXPECT_LE(lambda.uncertainty[i], 1e-3 * lambda.value[i]);
  }
  const Quantity& low = quantity(result, "lambda_min");
  EXPECT_NEAR(low.value[0], spectrum[0].item<double>(), low.uncertainty[0] + float32);
}

TEST(TopEigenvaluesProbe, OneEntryThatHasNotConvergedLeavesTheOthersAlone) {
  // One eigenvalue far out, then a crowd: a dozen steps find the first alone.
  at::Tensor d = at::linspace(1, 1.2, 120, at::kDouble);
  d[119] = 20;
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({1, 120})), LossKind::mse,
                      at::diag(d), at::zeros({120}, at::kLong), 120);
  const ProbeResult result = run_probe("top_eigenvalues", objective,
                                       {"count=2", "tolerance=1e-9", "max_krylov=10", "max_restarts=0"});
  const Quantity& lambda = quantity(result, "lambda");
  EXPECT_EQ(lambda.entry_status, std::vector<ProbeStatus>({ProbeStatus::ok, ProbeStatus::not_converged}));
  EXPECT_EQ(lambda.status, ProbeStatus::not_converged);
  EXPECT_NEAR(lambda.value[0], 400.0 / 120, 1e-9);
  EXPECT_EQ(quantity(result, "lambda_1_w2").status, ProbeStatus::ok);
  EXPECT_EQ(result.status, ProbeStatus::not_converged);
}

TEST(TopEigenvaluesProbe, LambdaIsAVectorAlsoWithOneEntry) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 30);
  const ProbeResult result = run_probe("top_eigenvalues", objective, {"count=1"});
  EXPECT_TRUE(quantity(result, "lambda").is_vector);
  EXPECT_EQ(quantity(result, "lambda").value.size(), 1u);
  EXPECT_FALSE(quantity(result, "lambda_1_w2").is_vector);
  EXPECT_FALSE(quantity(result, "lambda_min").is_vector);
}

TEST(TopEigenvaluesProbe, MeasuresAsManyOfTheSmallEndAsAskedFor) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 30);
  const ProbeResult none = run_probe("top_eigenvalues", objective, {"smallest=0"});
  const ProbeResult two = run_probe("top_eigenvalues", objective, {"smallest=2"});
  for (const Quantity& q : none.quantities) EXPECT_NE(q.name, "lambda_min");
  EXPECT_LT(attribute<int64_t>(none, "hvps"), attribute<int64_t>(two, "hvps"));
  const Quantity& low = quantity(two, "lambda_min");
  EXPECT_TRUE(low.is_vector);
  ASSERT_EQ(low.value.size(), 2u);
  EXPECT_LT(low.value[0], low.value[1]);
}

TEST(TopEigenvaluesProbe, StopsByTheEigenvalueWhereAskedTo) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 30);
  CurvatureOperator hessian(objective, Curvature::hessian);
  const at::Tensor exact = at::linalg_eigvalsh(testing::dense_matrix(hessian)).flip(0);
  const ProbeResult by_residual = run_probe("top_eigenvalues", objective, {"smallest=0"});
  const ProbeResult by_value = run_probe("top_eigenvalues", objective, {"smallest=0", "stop=\"eigenvalue\""});
  EXPECT_LT(attribute<int64_t>(by_value, "hvps"), attribute<int64_t>(by_residual, "hvps"));
  const Quantity& lambda = quantity(by_value, "lambda");
  EXPECT_EQ(lambda.uncertainty_kind, UncertaintyKind::eigenvalue_bound);
  EXPECT_EQ(lambda.status, ProbeStatus::ok);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_LE(std::abs(lambda.value[i] - exact[i].item<double>()), lambda.uncertainty[i]);
    EXPECT_LE(lambda.uncertainty[i], 1e-3 * lambda.value[i]);
  }
}

TEST(TopEigenvaluesProbe, SaysNotConverged) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 30);
  const ProbeResult result = run_probe("top_eigenvalues", objective,
                                       {"count=2", "tolerance=1e-11", "max_krylov=10", "max_restarts=0"});
  EXPECT_EQ(result.status, ProbeStatus::not_converged);
  EXPECT_FALSE(result.message.empty());
  EXPECT_TRUE(std::isfinite(quantity(result, "lambda").value[0]));
}

}  // namespace
}  // namespace basin
