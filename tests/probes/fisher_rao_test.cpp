#include "probes/fisher_rao.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/probes/probe_fixture.h"
#include "tests/probes/relu_networks.h"
#include "tests/probes/sharpness_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;
using testing::value_of;

const std::vector<std::string> kAll{"forms=[\"empirical\", \"model\", \"closed_form\"]"};
constexpr double kRounding = 1e-12;  // float64 sums of some thousand terms

struct Problem {
  std::shared_ptr<Model> model;
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 24);
  LossKind loss = LossKind::cross_entropy;
  Objective objective(int64_t micro_batch = 7) const {
    return Objective(model, loss, batch.images, batch.labels, micro_batch);
  }
  at::Tensor w() const { return ParameterVector(model->parameter_table()).gather(); }
  /// The gradients of single examples' losses as if all had this label, [n, parameters].
  at::Tensor gradients(const at::Tensor& labels) const {
    Objective relabelled(model, loss, batch.images, labels, 24);
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < 24; ++i) rows.push_back(relabelled.gradient_over(at::full({1}, i, at::kLong)));
    return at::stack(rows);
  }
};

void expect_relative(double value, double exact) { EXPECT_NEAR(value, exact, kRounding * std::abs(exact)); }

TEST(FisherRao, IsTheQuadraticFormOfTheDenseFisherMatrix) {
  for (const auto& model : {std::shared_ptr<Model>(std::make_shared<testing::BiasFreeRelu>()),
                            testing::tiny_mlp(), testing::tiny_mlp(1, at::kDouble, "relu")}) {
    const Problem problem{model};
    Objective objective = problem.objective();
    const at::Tensor w = problem.w(), g = problem.gradients(problem.batch.labels);
    const at::Tensor fisher = g.t().matmul(g) / 24;
    const ProbeResult result = run_probe("fisher_rao", objective);
    ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
    expect_relative(value_of(result, "fisher_rao_empirical"), w.dot(fisher.mv(w)).item<double>());
    // Labels of the network itself: every label with its probability.
    const at::Tensor p = at::softmax(objective.logits(0, 24).detach(), 1);
    at::Tensor own = at::zeros_like(fisher);
    for (int64_t c = 0; c < 3; ++c) {
      const at::Tensor of_c = problem.gradients(at::full({24}, c, at::kLong));
      own += of_c.t().matmul(of_c * p.select(1, c).unsqueeze(1)) / 24;
    }
    expect_relative(value_of(result, "fisher_rao_model"), w.dot(own.mv(w)).item<double>());
    EXPECT_EQ(quantity(result, "fisher_rao_model").uncertainty_kind, UncertaintyKind::none);
  }
}

TEST(FisherRao, ClosedFormIsThatOfAReluNetworkWithoutBiases) {
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::mse}) {
    const Problem problem{std::make_shared<testing::BiasFreeRelu>(),
                          testing::tiny_batch(testing::tiny_shape(), 24), loss};
    Objective objective = problem.objective();
    const ProbeResult result = run_probe("fisher_rao", objective, kAll);
    ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
    const at::Tensor f = objective.logits(0, 24).detach();
    const at::Tensor y = at::one_hot(problem.batch.labels, 3).to(at::kDouble);
    const at::Tensor slope = (loss == LossKind::mse ? f : at::softmax(f, 1)) - y;
    const double closed = 9 * (slope * f).sum(1).square().mean().item<double>();  // two hidden layers
    expect_relative(value_of(result, "fisher_rao_closed_form"), closed);
    expect_relative(value_of(result, "fisher_rao_empirical"), closed);
    EXPECT_EQ(attribute<double>(result, "degree"), 3);
    EXPECT_LT(attribute<double>(result, "degree_deviation"), 1e-14);
    if (loss == LossKind::cross_entropy) continue;
    // A normal label of variance 1: F = E J'J, and J w = 3 f.
    expect_relative(value_of(result, "fisher_rao_model"), 9 * f.square().sum(1).mean().item<double>());
  }
}

TEST(FisherRao, NoClosedFormWithBiasesSmoothActivationsOrShortcuts) {
  const testing::TinyBatch images = testing::tiny_batch(testing::tiny_image_shape(), 24);
  const Problem linear{std::make_shared<testing::LinearModel>(testing::sine_numbers({3, 9}))};
  Objective of_degree_one = linear.objective();
  EXPECT_EQ(run_probe("fisher_rao", of_degree_one, kAll).status, ProbeStatus::ok);
  const Problem biases{testing::tiny_mlp(1, at::kDouble, "relu")}, smooth{testing::tiny_mlp()},
      residual{testing::tiny_model("resnet20", {"activation=relu", "norm=none"}), images};
  for (const Problem& problem : {biases, smooth, residual}) {
    Objective objective = problem.objective();
    const ProbeResult result = run_probe("fisher_rao", objective, kAll);
    EXPECT_EQ(result.status, ProbeStatus::not_resolved);
    EXPECT_EQ(quantity(result, "fisher_rao_closed_form").status, ProbeStatus::not_resolved);
    EXPECT_TRUE(std::isnan(value_of(result, "fisher_rao_closed_form")));
    EXPECT_EQ(quantity(result, "fisher_rao_empirical").status, ProbeStatus::ok);
    EXPECT_EQ(result.message.find("no closed form"), 0u) << result.message;
  }
}

TEST(FisherRao, StaysUnderRescalingOfUnits) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const ProbeResult before = run_probe("fisher_rao", objective);
  network.rescale(7);
  testing::rescale_units(*network.model, "fc1", "fc2", {5, 1, 0.2, 3});
  const ProbeResult after = run_probe("fisher_rao", objective);
  for (const char* name : {"fisher_rao_empirical", "fisher_rao_model"})
    expect_relative(value_of(after, name), value_of(before, name));
}

TEST(FisherRao, OfPartOfTheTrainingSetHasAnErrorAndMicroBatchesDoNotMatter) {
  const Problem problem{testing::tiny_mlp()};
  Objective objective = problem.objective(), whole = problem.objective(24);
  const at::Tensor squares = problem.gradients(problem.batch.labels).mv(problem.w()).square();
  const ProbeResult result = run_probe("fisher_rao", objective, {}, 11, 60);
  const Quantity& q = quantity(result, "fisher_rao_empirical");
  const double error = squares.std().item<double>() * std::sqrt((1 - 24.0 / 60) / 24);
  EXPECT_NEAR(q.uncertainty[0], error, 1e-10 * error);
  EXPECT_LT(q.ci_low[0], q.value[0] - 2 * error);  // Student's t for 23
  expect_relative(value_of(run_probe("fisher_rao", whole), "fisher_rao_empirical"), q.value[0]);
}

}  // namespace
}  // namespace basin
