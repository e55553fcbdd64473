// Against matrices made of single gradients and of differences of the mean gradient, and LAPACK.
#include "probes/noise_curvature.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "probes/estimators/noise_estimate.h"
#include "tests/probes/dense_noise.h"
#include "tests/probes/known_gradients.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::DenseNoise;
using testing::quantity;
using testing::run_probe;
using testing::value_of;

// The error of the differences that the dense Hessian is made of; products have 1e-13.
constexpr double kDifferences = 1e-7;

/// mlp 9 -> 8 -> 5 -> 3, 143 parameters, at weights where curvature and noise are of every sign and size.
struct Tiny {
  std::shared_ptr<Model> model = testing::tiny_mlp();
  testing::TinyBatch batch;
  Objective objective{model, LossKind::cross_entropy, batch.images, batch.labels, 30};
  explicit Tiny(int64_t examples = 30) : batch(testing::tiny_batch(testing::tiny_shape(), examples)) {
    objective.parameters().scatter(objective.parameters().gather() * 1.5);
  }
};

at::Tensor leading(const at::Tensor& matrix, int64_t k) {
  return std::get<1>(at::linalg_eigh(matrix)).narrow(1, matrix.size(0) - k, k);
}

TEST(NoiseCurvature, OfSingleExamplesIsTheDefinition) {
  Tiny tiny;
  const DenseNoise dense(tiny.objective);
  const ProbeResult result = run_probe("noise_curvature", tiny.objective, {"groups=30"});
  EXPECT_EQ(attribute<int64_t>(result, "groups"), 30);
  const double trace = dense.product_trace(), along = dense.mean_curvature();
  EXPECT_NEAR(value_of(result, "tr_h_sigma_finite"), trace, kDifferences * std::abs(trace));
  EXPECT_NEAR(value_of(result, "g_h_g_finite"), along, kDifferences * std::abs(along));
  EXPECT_NEAR(value_of(result, "b_hessian_finite"), trace / along,
              2 * kDifferences * std::abs(trace / along));
  for (const char* name : {"tr_h_sigma_finite", "g_h_g_finite", "b_hessian_finite"})
    EXPECT_EQ(quantity(result, name).uncertainty_kind, UncertaintyKind::none) << name;
  // The examples as a draw: 1/(n - 1), and the noise that the mean gradient holds taken off.
  const double unbiased = trace * 30 / 29, signal = along - unbiased / 30;
  EXPECT_NEAR(value_of(result, "tr_h_sigma"), unbiased, kDifferences * std::abs(trace));
  EXPECT_NEAR(value_of(result, "g_h_g"), signal, 2 * kDifferences * std::abs(along));
  EXPECT_NEAR(value_of(result, "b_hessian"), unbiased / signal,
              4 * kDifferences * std::abs(unbiased / signal));
}

TEST(NoiseCurvature, EigenvaluesOverlapAndAlignmentsAreThoseOfTheMatrices) {
  Tiny tiny;
  const DenseNoise dense(tiny.objective);
  const at::Tensor c = dense.covariance(), values = std::get<0>(at::linalg_eigh(c));
  const double overlap = leading(dense.h, 3).t().mm(leading(c, 3)).square().sum().item<double>() / 3;
  const double cosine = dense.product_trace() / (dense.h.norm() * c.norm()).item<double>();
  const double traces = dense.product_trace() * 143 / (dense.h.trace() * c.trace()).item<double>();
  const ProbeResult tight = run_probe("noise_curvature", tiny.objective,
                                      {"count=3", "tolerance=1e-9", "trace_samples=100", "groups=30"});
  for (const char* name : {"covariance_lambda", "overlap", "alignment_cosine", "alignment_trace"})
    EXPECT_EQ(quantity(tight, name).status, ProbeStatus::ok) << name;
  for (int64_t i = 0; i < 3; ++i) {
    const double exact = values[142 - i].item<double>();
    EXPECT_NEAR(quantity(tight, "covariance_lambda").value[i], exact, 1e-12);
  }
  EXPECT_NEAR(value_of(tight, "overlap"), overlap, 1e-6);
  EXPECT_LT(quantity(tight, "overlap").uncertainty[0], 1e-6);
  const ProbeResult loose = run_probe("noise_curvature", tiny.objective, {"count=3", "tolerance=1e-2"});
  EXPECT_NEAR(value_of(loose, "overlap"), overlap, quantity(loose, "overlap").uncertainty[0]);
  const auto agrees = [](const Quantity& q, double exact, double sharp) {
    EXPECT_NEAR(q.value[0], exact, 4 * q.uncertainty[0]) << q.name;
    EXPECT_LT(q.uncertainty[0], sharp * std::abs(exact)) << q.name;
  };
  agrees(quantity(tight, "alignment_cosine"), cosine, 0.1);
  agrees(quantity(tight, "alignment_trace"), traces, 0.1);
}

// 15 parameters: traces and norms come out exactly, and with groups of one so does everything.
TEST(NoiseCurvature, OfAFewParametersIsExact) {
  testing::KnownGradients known;
  const ProbeResult result = run_probe("noise_curvature", known.objective, {"groups=43", "count=3"});
  const at::Tensor g = known.gradients(), apart = g - g.mean(0), c = apart.t().mm(apart) / 43;
  const at::Tensor h = at::kron(at::eye(3, at::kDouble), known.x.t().mm(known.x) / 43);
  const double trace = (h * c).sum().item<double>();
  EXPECT_NEAR(value_of(result, "tr_h_sigma_finite"), trace, 1e-12 * trace);
  EXPECT_NEAR(value_of(result, "alignment_cosine"), trace / (h.norm() * c.norm()).item<double>(), 1e-12);
  EXPECT_NEAR(value_of(result, "alignment_trace"), trace * 15 / (h.trace() * c.trace()).item<double>(),
              1e-12);
  EXPECT_EQ(quantity(result, "alignment_cosine").uncertainty_kind, UncertaintyKind::none);
  EXPECT_EQ(quantity(result, "alignment_trace").uncertainty_kind, UncertaintyKind::none);
  // H has each eigenvalue three times, so its leading three are a space of their own.
  EXPECT_NEAR(value_of(result, "overlap"),
              leading(h, 3).t().mm(leading(c, 3)).square().sum().item<double>() / 3, 1e-10);
  EXPECT_EQ(quantity(result, "overlap").status, ProbeStatus::ok);
}

TEST(NoiseCurvature, OverlapWithoutAGapIsNotResolved) {
  testing::KnownGradients known;  // two of three equal eigenvalues are no space
  const ProbeResult result = run_probe("noise_curvature", known.objective, {"count=2"});
  EXPECT_EQ(quantity(result, "overlap").status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "not ok: overlap (not_resolved)");
}

TEST(NoiseCurvature, GroupsAreUnbiasedWithTheErrorStated) {
  Tiny tiny;
  const double exact = DenseNoise(tiny.objective).product_trace();
  const int64_t repetitions = 80;
  at::Tensor traces = at::empty({repetitions}, at::kDouble);
  double stated = 0;
  for (int64_t seed = 0; seed < repetitions; ++seed) {
    const ProbeResult result =
        run_probe("noise_curvature", tiny.objective, {"groups=8", "count=1", "trace_samples=3"}, seed);
    traces[seed] = value_of(result, "tr_h_sigma_finite");
    stated += std::pow(quantity(result, "tr_h_sigma_finite").uncertainty[0], 2) / repetitions;
  }
  const double spread = traces.std().item<double>();
  EXPECT_NEAR(traces.mean().item<double>(), exact, 4 * spread / std::sqrt(static_cast<double>(repetitions)));
  // Standard deviations of 80 have an error of 8 %.
  EXPECT_NEAR(std::sqrt(stated), spread, 0.3 * spread);
  EXPECT_GT(spread, 0);
}

TEST(NoiseCurvature, IntervalsCoverTheTrainingSet) {
  testing::KnownGradients set(400);
  const at::Tensor g = set.gradients(), mean = g.mean(0), apart = g - mean;
  const at::Tensor h = at::kron(at::eye(3, at::kDouble), set.x.t().mm(set.x) / 400);
  const double trace = (apart.mm(h) * apart).sum().item<double>() / 400;
  const double along = mean.dot(h.mv(mean)).item<double>();
  const int64_t n = 100, repetitions = 120;
  int64_t trace_in = 0, along_in = 0, ratio_in = 0;
  at::Generator generator = make_generator(4);
  for (int64_t i = 0; i < repetitions; ++i) {
    const at::Tensor some = at::randperm(400, generator, at::kLong).narrow(0, 0, n);
    Objective part(std::make_shared<testing::LinearModel>(set.w.clone()), LossKind::mse,
                   set.x.index_select(0, some), set.labels.index_select(0, some), n);
    const ProbeResult result =
        run_probe("noise_curvature", part, {"groups=16", "count=2", "trace_samples=3"}, i, 400);
    const auto holds = [&](const char* name, double truth) {
      const Quantity& q = quantity(result, name);
      return q.ci_low[0] <= truth && truth <= q.ci_high[0];
    };
    trace_in += holds("tr_h_sigma_finite", trace);
    along_in += holds("g_h_g_finite", along);
    ratio_in += holds("b_hessian_finite", trace / along);
  }
  // 95 % of 120 is 114 with a standard deviation of 2.4; with the Hessian of the 100 taken for that of the
  // 400 the trace is held in 78 %.
  for (const int64_t inside : {trace_in, along_in, ratio_in}) {
    EXPECT_GE(inside, 104);
    EXPECT_LE(inside, 119);
  }
}

// Which examples are in no group is in no error.
TEST(NoiseCurvature, LeavesFewExamplesOver) {
  Tiny tiny(95);  // rounded up, groups of ten would leave five over
  const ProbeResult result =
      run_probe("noise_curvature", tiny.objective, {"groups=10", "count=1", "trace_samples=3"});
  EXPECT_EQ(attribute<int64_t>(result, "group_size"), 9);
  EXPECT_EQ(attribute<int64_t>(result, "groups"), 10);
}

TEST(NoiseCurvature, TooFewExamplesAreNotResolved) {
  testing::KnownGradients few(7);
  const ProbeResult result = run_probe("noise_curvature", few.objective);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "fewer than 8 examples");
  for (const Quantity& q : result.quantities) {
    EXPECT_EQ(q.status, ProbeStatus::not_resolved) << q.name;
    for (const double value : q.value) EXPECT_TRUE(std::isnan(value)) << q.name;
  }
}

}  // namespace
}  // namespace basin
