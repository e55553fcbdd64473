#include "probes/curvature.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "hessian/curvature_operator.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

struct Fixture {
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective{testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 8};

  /// The operators have oracles of their own.
  at::Tensor dense(Curvature kind) {
    CurvatureOperator op(objective, kind);
    return testing::dense_matrix(op);
  }
};

/// Coverage of the intervals is counted in spectrum_test and trace_test; this is about which number it is.
bool near(const Quantity& q, double exact) { return std::abs(q.value[0] - exact) <= 5 * q.uncertainty[0]; }

TEST(CurvatureProbe, AgreesWithTheDenseMatrixForEveryKind) {
  Fixture f;
  for (const Curvature kind : {Curvature::hessian, Curvature::gauss_newton, Curvature::empirical_fisher,
                               Curvature::gradient_covariance}) {
    const std::string name = to_string(kind);
    const at::Tensor a = f.dense(kind), exact = at::linalg_eigvalsh(a);
    const ProbeResult result =
        run_probe("curvature", f.objective, {"matrix=" + name, "tolerance=1e-6", "count=3"});
    EXPECT_EQ(result.status, ProbeStatus::ok) << name;
    const Quantity& lambda = quantity(result, "lambda");
    for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(lambda.value[i], exact[142 - i].item<double>(), 1e-9);
    EXPECT_NEAR(quantity(result, "lambda_min").value[0], exact[0].item<double>(), 1e-6);
    const double threshold = attribute<double>(result, "outlier_threshold");
    EXPECT_NEAR(threshold, 0.1 * lambda.value[0], 1e-12);
    EXPECT_TRUE(near(quantity(result, "trace"), a.trace().item<double>())) << name;
    EXPECT_TRUE(near(quantity(result, "squared_frobenius"), a.square().sum().item<double>())) << name;
    EXPECT_TRUE(near(quantity(result, "outliers"), exact.gt(threshold).sum().item<double>())) << name;
    // No error so wide that anything would pass: below that of as many plain samples, whose variance is
    // known.
    const double variance = 2 * (a.square().sum() - a.diag().square().sum()).item<double>();
    const auto samples = static_cast<double>(attribute<int64_t>(result, "trace_samples"));
    EXPECT_LT(quantity(result, "trace").uncertainty[0], 0.7 * std::sqrt(variance / samples)) << name;
  }
}

TEST(CurvatureProbe, RestrictsToALayerAndAKind) {
  Fixture f;
  const auto& parameters = f.objective.parameters().parameters();
  const at::Tensor a = f.dense(Curvature::hessian);
  const std::string layer = parameters.front().layer;
  const int64_t n = parameters.front().tensor.numel();  // a layer's weights come first
  const ProbeResult result =
      run_probe("curvature", f.objective,
                {"layers=[\"" + layer + "\"]", "kinds=[\"weight\"]", "count=2", "tolerance=1e-6"});
  EXPECT_EQ(attribute<int64_t>(result, "coordinates"), n);
  const at::Tensor exact = at::linalg_eigvalsh(a.slice(0, 0, n).slice(1, 0, n));
  EXPECT_NEAR(quantity(result, "lambda").value[0], exact[n - 1].item<double>(), 1e-9);
  EXPECT_NEAR(quantity(result, "lambda").value[1], exact[n - 2].item<double>(), 1e-9);
  EXPECT_THROW(run_probe("curvature", f.objective, {"layers=[\"nowhere\"]"}), ConfigError);
}

TEST(CurvatureProbe, SaysWhatItSpent) {
  Fixture f;
  const ProbeResult result = run_probe("curvature", f.objective);
  const int64_t pairs = attribute<int64_t>(result, "hvps_pairs");
  EXPECT_EQ(attribute<int64_t>(result, "hvps"), pairs + 3 * 8 + 8);
  EXPECT_EQ(attribute<int64_t>(result, "starts"), 4);
  EXPECT_EQ(attribute<double>(result, "repeat_difference"), 0);
  EXPECT_LT(attribute<double>(result, "asymmetry"), 1e-10);
  EXPECT_EQ(attribute<std::vector<double>>(result, "density").size(), 400u);
}

// The steps themselves: tests/hessian/power_iteration_test.cpp.
TEST(CurvatureProbe, PyHessiansNumbersKeepAnErrorBesideThem) {
  Fixture f;
  const at::Tensor a = f.dense(Curvature::hessian), exact = at::linalg_eigvalsh(a);
  const ProbeResult one = run_probe("curvature", f.objective, {"compat=pyhessian"});
  const ProbeResult two = run_probe("curvature", f.objective, {"count=2", "compat=pyhessian"});
  ASSERT_EQ(one.quantities.size(), 2u);
  EXPECT_EQ(one.quantities[0].definition, "hessian-lambda-pyhessian");
  EXPECT_EQ(one.quantities[1].definition, "curvature-trace-pyhessian");
  EXPECT_EQ(quantity(one, "lambda").value.size(), 1u);
  const Quantity& lambda = quantity(two, "lambda");
  ASSERT_EQ(lambda.value.size(), 2u) << "what was set by hand counts, before the tool's name as well";
  EXPECT_EQ(lambda.uncertainty_kind, UncertaintyKind::residual);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE((exact - lambda.value[i]).abs().min().item<double>(), lambda.uncertainty[i]);
    EXPECT_EQ(lambda.entry_status[i], lambda.uncertainty[i] <= 1e-3 * std::abs(lambda.value[i])
                                          ? ProbeStatus::ok
                                          : ProbeStatus::not_converged);
  }
  EXPECT_NEAR(lambda.value[0], exact[142].item<double>(), 0.02 * lambda.value[0]);  // some ten of its steps
  const Quantity& trace = quantity(one, "trace");
  EXPECT_TRUE(near(trace, a.trace().item<double>()));
  EXPECT_GT(trace.uncertainty[0], 0);
  const auto iterations = attribute<std::vector<int64_t>>(two, "iterations");
  EXPECT_EQ(attribute<int64_t>(two, "hvps"),
            iterations.at(0) + iterations.at(1) + attribute<int64_t>(two, "trace_samples"));
  EXPECT_EQ(attribute<std::string>(two, "method"), "power");
}

}  // namespace
}  // namespace basin
