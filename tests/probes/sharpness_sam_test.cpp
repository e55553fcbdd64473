#include "probes/sharpness_sam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "probes/common.h"
#include "tests/probes/probe_fixture.h"
#include "tests/probes/sharpness_models.h"

namespace basin {
namespace {

using testing::AffineSquares;
using testing::attribute;
using testing::quantity;
using testing::run_probe;

constexpr double kSamRounding = 1e-12;  // of some hundred float64 operations on numbers of order 1

/// rho |T g| and the rise along rho T^2 g / |T g|, written out.
struct Expected {
  double first_order, ascended;
  Expected(const AffineSquares& problem, const at::Tensor& index, const at::Tensor& t, double rho) {
    const at::Tensor g = problem.gradient(index);
    const double slope = (t * g).norm().item<double>();
    first_order = rho * slope;
    ascended = problem.rise(index, t * t * g * (rho / slope));
  }
};

TEST(SharpnessSam, QuadraticInClosedForm) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective,
                                       {"rhos=[0.05, 2.0]", "asam_rhos=[0.5]", "eta=0.01", "group_size=23"});
  EXPECT_EQ(result.status, ProbeStatus::ok) << result.message;
  const at::Tensor one = at::ones({10}, at::kDouble);
  for (const double rho : {0.05, 2.0}) {
    const Expected expected(problem, problem.all(), one, rho);
    const std::string tail = rho == 2 ? "2e0" : "5e-2";
    EXPECT_NEAR(quantity(result, "sam_" + tail).value[0], expected.ascended, kSamRounding);
    EXPECT_NEAR(quantity(result, "sam_first_" + tail).value[0], expected.first_order, kSamRounding);
  }
  const at::Tensor t = at::where(problem.is_weight() > 0, problem.weights().abs() + 0.01, one);
  const Expected asam(problem, problem.all(), t, 0.5);
  EXPECT_NEAR(quantity(result, "asam_5e-1").value[0], asam.ascended, kSamRounding);
  EXPECT_NEAR(quantity(result, "asam_first_5e-1").value[0], asam.first_order, kSamRounding);
  EXPECT_EQ(quantity(result, "asam_5e-1").definition, "asam-ascended");
  EXPECT_EQ(quantity(result, "sam_5e-2").uncertainty_kind, UncertaintyKind::none);
  EXPECT_EQ(quantity(result, "sam_5e-2").units, "1");
}

TEST(SharpnessSam, Davda54ScalesBiasesToo) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"compat=davda54"});
  const Expected expected(problem, problem.all(), problem.weights().abs(), 2);
  EXPECT_NEAR(quantity(result, "asam_2e0").value[0], expected.ascended, kSamRounding);
  EXPECT_NEAR(quantity(result, "asam_first_2e0").value[0], expected.first_order, kSamRounding);
  EXPECT_EQ(quantity(result, "asam_2e0").definition, "asam-all-ascended");
}

TEST(SharpnessSam, GroupsAscendOnTheirOwn) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"group_size=5"}, 3);
  const ExampleGroups groups = example_groups(23, 5, 3);
  ASSERT_EQ(groups.index.size(), 4u);  // three examples are left over
  std::vector<double> rises, slopes;
  for (const at::Tensor& index : groups.index) {
    const Expected expected(problem, index, at::ones({10}, at::kDouble), 0.05);
    rises.push_back(expected.ascended);
    slopes.push_back(expected.first_order);
  }
  const at::Tensor rise = at::tensor(rises, at::kDouble), slope = at::tensor(slopes, at::kDouble);
  const Quantity& ascended = quantity(result, "sam_m5_5e-2");
  EXPECT_NEAR(ascended.value[0], rise.mean().item<double>(), kSamRounding);
  EXPECT_NEAR(ascended.uncertainty[0], rise.std().item<double>() / 2, kSamRounding);
  EXPECT_EQ(ascended.uncertainty_kind, UncertaintyKind::standard_error);
  EXPECT_NEAR(quantity(result, "sam_first_m5_5e-2").value[0], slope.mean().item<double>(), kSamRounding);
  // One direction can't ascend for each group what its own does.
  EXPECT_GT(ascended.value[0], quantity(result, "sam_5e-2").value[0]);
}

TEST(SharpnessSam, GroupsPartitionTheExamples) {
  const ExampleGroups groups = example_groups(40, 8, 5);
  EXPECT_TRUE(at::equal(std::get<0>(at::cat(groups.index).sort()), at::arange(40)));
  EXPECT_EQ(example_groups(40, 128, 5).size, 20);  // two groups at least
  EXPECT_EQ(example_groups(1, 128, 5).index.size(), 1u);
}

TEST(SharpnessSam, AscendedGrowsWithTheRadiusOnAConvexLoss) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"rhos=[0.01, 0.1, 0.5, 1.0, 4.0]"});
  double last = 0;
  for (const std::string tail : {"1e-2", "1e-1", "5e-1", "1e0", "4e0"}) {
    const double value = quantity(result, "sam_" + tail).value[0];
    EXPECT_GT(value, last) << tail;
    EXPECT_GE(value, quantity(result, "sam_first_" + tail).value[0]) << tail;  // convex
    last = value;
  }
}

/// Relative change of a quantity when layers are scaled against each other, the function staying as it is.
double moved_by_rescaling(const std::string& name, const std::vector<std::string>& settings) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const double before = quantity(run_probe("sharpness_sam", objective, settings), name).value[0];
  network.rescale(3);
  return std::abs(quantity(run_probe("sharpness_sam", objective, settings), name).value[0] / before - 1);
}

TEST(SharpnessSam, AsamIsInvariantOnlyWithoutEtaAndWithBiasesScaled) {
  for (const std::string name : {"asam_5e-1", "asam_first_5e-1", "asam_m20_5e-1"}) {
    // Rounding of the network's sums, over a rise of some 1e-1.
    EXPECT_LT(moved_by_rescaling(name, {"eta=0.0", "scaled=all"}), 1e-11) << name;
    EXPECT_GT(moved_by_rescaling(name, {"eta=0.0", "scaled=weights"}), 1e-3) << name;
    EXPECT_GT(moved_by_rescaling(name, {"eta=0.01", "scaled=all"}), 1e-4) << name;
  }
  EXPECT_GT(moved_by_rescaling("sam_5e-2", {}), 1e-2);
}

TEST(SharpnessSam, WeightsOfExactlyZeroStayWhereTWouldBeZero) {
  AffineSquares problem;
  problem.w.zero_();
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"eta=0.0", "scaled=all"});
  const at::Tensor t = at::cat({at::zeros({8}, at::kDouble), problem.b.abs()});
  EXPECT_NEAR(quantity(result, "asam_5e-1").value[0], Expected(problem, problem.all(), t, 0.5).ascended,
              kSamRounding);
}

TEST(SharpnessSam, WithoutAGradientThereIsNoDirection) {
  const at::Tensor x = at::zeros({6, 4}, at::kDouble), labels = at::arange(6).remainder(2);
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({2, 4})), LossKind::mse, x,
                      labels, 6);
  const ProbeResult result = run_probe("sharpness_sam", objective);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_FALSE(result.message.empty());
  for (const std::string name : {"sam_5e-2", "asam_5e-1", "sam_m3_5e-2"}) {
    EXPECT_EQ(quantity(result, name).status, ProbeStatus::not_resolved);
    EXPECT_TRUE(std::isnan(quantity(result, name).value[0]));
  }
  EXPECT_EQ(quantity(result, "sam_first_5e-2").value[0], 0);
  EXPECT_EQ(quantity(result, "sam_first_5e-2").status, ProbeStatus::ok);
}

TEST(SharpnessSam, OfOneExampleHasNoErrorOverGroups) {
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({3, 4})), LossKind::mse,
                      testing::sine_numbers({1, 4}, 7), at::zeros({1}, at::kLong), 1);
  const ProbeResult result = run_probe("sharpness_sam", objective, {"rhos=[0.05]", "asam_rhos=[0.5]"});
  EXPECT_EQ(quantity(result, "sam_5e-2").status, ProbeStatus::ok);
  EXPECT_EQ(quantity(result, "sam_m1_5e-2").status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(quantity(result, "sam_m1_5e-2").value[0]));
}

TEST(SharpnessSam, AStepIntoInfinityIsNonfiniteAlone) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const at::Tensor before = objective.parameters().gather();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"rhos=[0.05, 1e200]"});
  EXPECT_EQ(result.status, ProbeStatus::nonfinite);
  EXPECT_EQ(quantity(result, "sam_1e200").status, ProbeStatus::nonfinite);
  EXPECT_TRUE(std::isnan(quantity(result, "sam_1e200").value[0]));
  EXPECT_EQ(quantity(result, "sam_5e-2").status, ProbeStatus::ok);
  EXPECT_TRUE(at::equal(objective.parameters().gather(), before));
}

TEST(SharpnessSam, CountsItsPasses) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_sam", objective, {"group_size=5"});
  EXPECT_EQ(attribute<double>(result, "gradients"), 1 + 20.0 / 23);
  EXPECT_EQ(attribute<double>(result, "forwards"), 3 * (1 + 20.0 / 23));
  EXPECT_EQ(attribute<int64_t>(result, "group_size"), 5);
  EXPECT_EQ(attribute<int64_t>(result, "groups"), 4);
  EXPECT_EQ(objective.gradients_done(), 1);
}

TEST(SharpnessSam, WhatIsSetByHandStandsBesideATool) {
  SharpnessSamOptions options;
  OptionTable table;
  bind_options(table, options);
  table.set_from_text("eta=0.1", "test");
  table.set_from_text("compat=davda54", "test");
  EXPECT_EQ(options.eta, 0.1);
  EXPECT_EQ(options.scaled, "all");
  EXPECT_EQ(options.asam_rhos, std::vector<double>{2.0});
  EXPECT_THROW(table.set_from_text("compat=unheard_of", "test"), ConfigError);
  EXPECT_THROW(table.set_from_text("rhos=[]", "test"), ConfigError);
}

}  // namespace
}  // namespace basin
