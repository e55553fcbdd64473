#include "probes/margins.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/probes/probe_fixture.h"
#include "tests/probes/relu_networks.h"
#include "tests/probes/sharpness_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

/// logits = X W' with labels that are right for most.
struct Linear3 {
  at::Tensor x = testing::sine_numbers({41, 5}, 7), w = testing::sine_numbers({3, 5}, 90);
  at::Tensor labels = [&] {
    at::Tensor best = x.matmul(w.t()).argmax(1);
    best.narrow(0, 0, 6).add_(1).remainder_(3);
    return best;
  }();
  Objective objective(LossKind loss = LossKind::cross_entropy) const {
    return Objective(std::make_shared<testing::LinearModel>(w.clone()), loss, x, labels, 10);
  }
  std::vector<double> sorted_margins() const {
    const at::Tensor f = x.matmul(w.t());
    std::vector<double> margins;
    for (int64_t i = 0; i < 41; ++i) {
      const int64_t y = labels[i].item<int64_t>();
      double other = -1e300;
      for (int64_t c = 0; c < 3; ++c) {
        if (c != y) other = std::max(other, f[i][c].item<double>());
      }
      margins.push_back(f[i][y].item<double>() - other);
    }
    std::sort(margins.begin(), margins.end());
    return margins;
  }
};

TEST(Margins, AreTheDistancesToTheNextLogit) {
  const Linear3 problem;
  const std::vector<double> margins = problem.sorted_margins();
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::mse}) {
    Objective objective = problem.objective(loss);
    const ProbeResult result = run_probe("margins", objective);
    ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
    // 40 gaps: the 10 % percentile is the fifth number, the median the twenty-first.
    EXPECT_NEAR(quantity(result, "margin_p10").value[0], margins[4], 1e-14);
    EXPECT_NEAR(quantity(result, "margin_p50").value[0], margins[20], 1e-14);
    const double mean = std::accumulate(margins.begin(), margins.end(), 0.0) / 41;
    EXPECT_NEAR(quantity(result, "margin_mean").value[0], mean, 1e-14);
    EXPECT_NEAR(quantity(result, "negative_share").value[0], 1 - objective.accuracy(), 1e-14);
    EXPECT_NEAR(quantity(result, "negative_share").value[0], 6.0 / 41, 1e-14);
    for (const Quantity& q : result.quantities)
      EXPECT_EQ(q.uncertainty_kind, UncertaintyKind::none) << q.name;
    const double spectral = std::get<1>(at::linalg_svd(problem.w)).max().item<double>();
    const double path = problem.w.norm().item<double>();  // one layer
    EXPECT_NEAR(quantity(result, "margin_over_spectral").value[0], margins[4] / spectral, 1e-13);
    EXPECT_NEAR(quantity(result, "margin_over_path").value[0], margins[4] / path, 1e-13);
    EXPECT_NEAR(attribute<double>(result, "path_norm"), path, 1e-13);
  }
}

TEST(Margins, OfPartOfTheTrainingSetHaveErrors) {
  const Linear3 problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("margins", objective, {"percentiles=[1, 50]"}, 11, 400);
  const Quantity &mean = quantity(result, "margin_mean"), &share = quantity(result, "negative_share");
  const at::Tensor margins = at::tensor(problem.sorted_margins(), at::kDouble);
  const double error = margins.std().item<double>() * std::sqrt((1 - 41.0 / 400) / 41);
  EXPECT_NEAR(mean.uncertainty[0], error, 1e-12);
  EXPECT_LT(share.ci_low[0], 6.0 / 41);
  EXPECT_GT(share.ci_high[0], 6.0 / 41);
  // Ranks 20.5 -+ 1.96 sqrt(41/4 (400 - 41)/399) = 14.55 and 26.45, outwards.
  EXPECT_NEAR(quantity(result, "margin_p50").ci_low[0], margins[13].item<double>(), 1e-14);
  EXPECT_NEAR(quantity(result, "margin_p50").ci_high[0], margins[27].item<double>(), 1e-14);
  EXPECT_EQ(quantity(result, "margin_p1").status, ProbeStatus::not_resolved);  // open below
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "too few examples for the interval of a percentile");
}

TEST(Margins, NormalisedOnesStayWhenLayersAreRescaledOrLogitsScaled) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const auto values = [&] {
    const ProbeResult result = run_probe("margins", objective);
    return std::vector<double>{quantity(result, "margin_p10").value[0],
                               quantity(result, "margin_over_spectral").value[0],
                               quantity(result, "margin_over_path").value[0]};
  };
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * std::abs(b[i]) + 1e-15) << i;
  };
  std::vector<double> before = values();
  network.rescale(7);
  expect_near(values(), before);
  const at::NoGradGuard no_grad;
  for (const ParameterInfo& p : network.model->parameter_table()) {
    if (p.layer == "fc2") at::Tensor(p.tensor).mul_(3);
  }
  before[0] *= 3;
  expect_near(values(), before);
}

TEST(Margins, OfANetworkOfZerosHaveNoNormToGoBy) {
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 40);
  Objective objective(testing::tiny_mlp(1, at::kDouble, "relu"), LossKind::cross_entropy, batch.images,
                      batch.labels, 40);
  objective.parameters().scatter(at::zeros_like(objective.parameters().gather()));
  const ProbeResult result = run_probe("margins", objective);
  EXPECT_EQ(quantity(result, "margin_over_path").status, ProbeStatus::not_resolved);
  EXPECT_NE(result.message.find("margin_over_path: no path"), std::string::npos) << result.message;
}

TEST(Margins, WithoutAPathNormThatOneIsNotResolved) {
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 20);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 20);
  const ProbeResult result = run_probe("margins", objective);
  EXPECT_EQ(quantity(result, "margin_over_path").status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(result, "margin_over_spectral").status, ProbeStatus::ok);
  EXPECT_EQ(result.message.find("margin_over_path: "), 0u) << result.message;
  EXPECT_EQ(run_probe("margins", objective, {"over=spectral"}).status, ProbeStatus::ok);
}

}  // namespace
}  // namespace basin
