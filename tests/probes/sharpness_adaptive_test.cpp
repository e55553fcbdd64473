#include "probes/sharpness_adaptive.h"

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

constexpr double kLossRounding = 1e-12;  // of means of losses near 30

/// Losses 30 + x_i'w: worst cases are rho |c g|_q with q = 1 for linf and 2 for l2.
struct Linear {
  at::Tensor x = testing::sine_numbers({24, 6}), w = testing::sine_numbers({6}, 300);
  Objective objective() const {
    return Objective(std::make_shared<testing::LinearLoss>(w.clone()), LossKind::mse, x,
                     at::zeros({24}, at::kLong), 7);
  }
  /// Mean over the groups that the probe draws with this seed, and its standard error.
  std::pair<double, double> expected(const at::Tensor& c, int64_t q, double rho, int64_t m,
                                     uint64_t seed) const {
    std::vector<double> rises;
    for (const at::Tensor& index : example_groups(24, m, seed).index)
      rises.push_back(rho * (c * x.index_select(0, index).mean(0)).norm(q).item<double>());
    const at::Tensor all = at::tensor(rises, at::kDouble);
    return {all.mean().item<double>(),
            all.std().item<double>() / std::sqrt(static_cast<double>(rises.size()))};
  }
};

TEST(SharpnessAdaptive, WorstCaseOfALinearLossInClosedForm) {
  const Linear problem;
  Objective objective = problem.objective();
  for (const std::string scale : {"adaptive", "standard"}) {
    const ProbeResult result = run_probe(
        "sharpness_adaptive", objective,
        {"measures=[\"worst_l2\", \"worst_linf\"]", "logits=plain", "group_size=6", "scale=" + scale}, 5);
    ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
    const bool adaptive = scale == "adaptive";
    const at::Tensor c = adaptive ? problem.w.abs() + 1e-3 : at::ones({6}, at::kDouble);
    const std::string stem = adaptive ? "" : "_standard";
    const auto [l2, l2_error] = problem.expected(c, 2, 0.5, 6, 5);
    const auto [linf, linf_error] = problem.expected(c, 1, 1e-3, 6, 5);
    const Quantity& found_l2 = quantity(result, "worst_l2" + stem + "_m6_5e-1");
    const Quantity& found_linf = quantity(result, "worst_linf" + stem + "_m6_1e-3");
    // The first step ends on the maximum.
    EXPECT_NEAR(found_l2.value[0], l2, kLossRounding);
    EXPECT_NEAR(found_l2.uncertainty[0], l2_error, kLossRounding);
    EXPECT_NEAR(found_linf.value[0], linf, kLossRounding);
    EXPECT_NEAR(found_linf.uncertainty[0], linf_error, kLossRounding);
    EXPECT_EQ(found_linf.uncertainty_kind, UncertaintyKind::lower_bound);
    EXPECT_EQ(found_linf.definition, "adaptive-worst");
    const auto norms = attribute<std::vector<double>>(result, found_l2.name + "_group_norms");
    ASSERT_EQ(norms.size(), 4u);
    for (const double norm : norms) EXPECT_NEAR(norm, 0.5, 1e-15);
  }
}

TEST(SharpnessAdaptive, WorstCaseOfAQuadraticReachesEveryCorner) {
  // Convex, so that the maximum over the box is in one of 2^10 corners: all are tried.
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result =
      run_probe("sharpness_adaptive", objective,
                {"measures=worst_linf", "worst_linf_rhos=[0.05]", "logits=plain", "group_size=11"}, 5);
  double best_sum = 0;
  const at::Tensor c = problem.weights().abs() + 1e-3;
  for (const at::Tensor& index : example_groups(23, 11, 5).index) {
    double best = 0;
    for (int corner = 0; corner < 1024; ++corner) {
      const at::Tensor sign = at::bitwise_and(at::full({10}, corner, at::kLong), at::pow(2, at::arange(10)))
                                      .ne(0)
                                      .to(at::kDouble) *
                                  2 -
                              1;
      best = std::max(best, problem.rise(index, 0.05 * c * sign));
    }
    best_sum += best;
  }
  const double found = quantity(result, "worst_linf_m11_5e-2").value[0];
  EXPECT_LE(found, best_sum / 2 * (1 + 1e-10));  // a lower bound
  EXPECT_GE(found, best_sum / 2 * (1 - 1e-10));  // gradients outweigh the curvature in a box so small
}

TEST(SharpnessAdaptive, AverageOfAQuadraticInClosedForm) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const at::Tensor c = problem.weights().abs() + 1e-3;
  const double curvature = (c * c * problem.hessian_diagonal()).sum().item<double>();
  const ProbeResult result =
      run_probe("sharpness_adaptive", objective,
                {"measures=[\"average_l2\", \"average_linf\"]", "logits=plain", "draws=4000"});
  // rho^2/2 sum c^2 H_ii, and a third of it for uniform draws.
  const double l2 = 0.01 / 2 * curvature, linf = 0.04 / 6 * curvature;
  const Quantity &found_l2 = quantity(result, "average_l2_1e-1"),
                 &found_linf = quantity(result, "average_linf_2e-1");
  EXPECT_NEAR(found_l2.value[0], l2, 4 * found_l2.uncertainty[0]);
  EXPECT_NEAR(found_linf.value[0], linf, 4 * found_linf.uncertainty[0]);
  // Variance of one draw: rho^2 |c g|^2 + rho^4/2 |diag(c) H diag(c)|_F^2; the second part is at most this.
  const at::Tensor g = problem.gradient(problem.all());
  const double slope = 0.01 * (c * g).square().sum().item<double>();
  EXPECT_GT(found_l2.uncertainty[0], 0.9 * std::sqrt(slope / 4000));
  EXPECT_LT(found_l2.uncertainty[0], 1.1 * std::sqrt((slope + 0.5e-4 * curvature * curvature) / 4000));
  EXPECT_EQ(found_l2.uncertainty_kind, UncertaintyKind::standard_error);
}

TEST(SharpnessAdaptive, StandardErrorOfTheAverageCoversByRepetition) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const at::Tensor c = problem.weights().abs() + 1e-3;
  const double expected = 0.01 / 2 * (c * c * problem.hessian_diagonal()).sum().item<double>();
  int covered = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ProbeResult result =
        run_probe("sharpness_adaptive", objective, {"measures=average_l2", "logits=plain", "draws=20"}, seed);
    const Quantity& found = result.quantities.front();
    covered += std::abs(found.value[0] - expected) < 2.093 * found.uncertainty[0];  // t of 19 degrees
  }
  // 95 % of 200; three binomial standard deviations are 9.
  EXPECT_GE(covered, 181);
  EXPECT_LE(covered, 199);
}

TEST(SharpnessAdaptive, NormalisedLogitsDoNotSeeTheirScale) {
  const at::Tensor x = testing::sine_numbers({24, 4}), labels = at::arange(24).remainder(3);
  const at::Tensor w = testing::sine_numbers({3, 4}, 100);
  const auto measure = [&](double scale) {
    Objective objective(std::make_shared<testing::LinearModel>(w * scale), LossKind::cross_entropy, x, labels,
                        24);
    return run_probe("sharpness_adaptive", objective, {"eta=0.0"});
  };
  const ProbeResult once = measure(1), times_five = measure(5);
  for (const std::string name :
       {"worst_l2_normalised_m12_5e-1", "worst_linf_normalised_m12_1e-3", "average_l2_normalised_1e-1"}) {
    const double value = quantity(once, name).value[0];
    // Rises of 1e-3 or more from losses of order 1 in float64.
    EXPECT_NEAR(quantity(times_five, name).value[0], value, 1e-10 * std::abs(value)) << name;
  }
  const double plain = quantity(once, "average_l2_1e-1").value[0];
  EXPECT_GT(std::abs(quantity(times_five, "average_l2_1e-1").value[0] - plain), 0.1 * std::abs(plain));
}

TEST(SharpnessAdaptive, IsInvariantOnlyWithoutEta) {
  const auto moved = [](const std::string& name, const std::vector<std::string>& settings) {
    testing::ReluNetwork network;
    Objective objective = network.objective();
    const double before = quantity(run_probe("sharpness_adaptive", objective, settings), name).value[0];
    network.rescale(3);
    return std::abs(quantity(run_probe("sharpness_adaptive", objective, settings), name).value[0] / before -
                    1);
  };
  // l2 searches repeat to rounding; the signs of a linf search would turn over where a derivative is
  // rounding.
  for (const std::string name :
       {"worst_l2_m20_5e-1", "worst_linf_m20_1e-3", "average_l2_1e-1", "average_linf_2e-1"}) {
    EXPECT_LT(moved(name, {"eta=0.0", "logits=plain"}), 1e-9) << name;
    EXPECT_GT(moved(name, {"eta=0.01", "logits=plain"}), 1e-5) << name;
    const std::string standard = std::string(name).insert(name.find('_', name.find('_') + 1), "_standard");
    EXPECT_GT(moved(standard, {"scale=standard", "logits=plain"}), 1e-2) << name;
  }
}

TEST(SharpnessAdaptive, GrowsWithTheRadius) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const ProbeResult result =
      run_probe("sharpness_adaptive", objective,
                {"logits=plain", "worst_l2_rhos=[0.1, 0.5, 2.0]", "worst_linf_rhos=[0.001, 0.01, 0.1]"});
  EXPECT_LT(quantity(result, "worst_l2_m20_1e-1").value[0], quantity(result, "worst_l2_m20_5e-1").value[0]);
  EXPECT_LT(quantity(result, "worst_l2_m20_5e-1").value[0], quantity(result, "worst_l2_m20_2e0").value[0]);
  EXPECT_LT(quantity(result, "worst_linf_m20_1e-3").value[0],
            quantity(result, "worst_linf_m20_1e-2").value[0]);
  EXPECT_LT(quantity(result, "worst_linf_m20_1e-2").value[0],
            quantity(result, "worst_linf_m20_1e-1").value[0]);
}

TEST(SharpnessAdaptive, WeightsOfExactlyZeroAreHeldAndTheRestStaysInItsBall) {
  Linear problem;
  problem.w[2] = 0;
  Objective objective = problem.objective();
  const std::vector<std::string> settings = {"measures=[\"worst_l2\", \"worst_linf\"]", "logits=plain",
                                             "group_size=6"};
  std::vector<std::string> without_eta = settings;
  without_eta.emplace_back("eta=0.0");
  const ProbeResult held = run_probe("sharpness_adaptive", objective, without_eta, 5);
  EXPECT_NEAR(quantity(held, "worst_l2_m6_5e-1").value[0],
              problem.expected(problem.w.abs(), 2, 0.5, 6, 5).first, kLossRounding);
  EXPECT_NEAR(quantity(held, "worst_linf_m6_1e-3").value[0],
              problem.expected(problem.w.abs(), 1, 1e-3, 6, 5).first, kLossRounding);
  for (const double norm : attribute<std::vector<double>>(held, "worst_l2_m6_5e-1_group_norms"))
    EXPECT_LE(norm, 0.5 + 1e-15);
  // With eta it moves.
  const ProbeResult moved = run_probe("sharpness_adaptive", objective, settings, 5);
  EXPECT_NEAR(quantity(moved, "worst_l2_m6_5e-1").value[0],
              problem.expected(problem.w.abs() + 1e-3, 2, 0.5, 6, 5).first, kLossRounding);
}

TEST(SharpnessAdaptive, TheToolsL2SearchLeavesItsBallWhereAWeightIsZero) {
  Linear problem;
  const std::vector<std::string> settings = {"compat=sharpness_vs_generalization",
                                             "measures=[\"worst_l2\", \"worst_linf\"]", "logits=plain",
                                             "group_size=6"};
  Objective without_zeros = problem.objective();
  const ProbeResult plain = run_probe("sharpness_adaptive", without_zeros, settings, 5);
  EXPECT_NEAR(quantity(plain, "worst_l2_m6_5e-1").value[0],
              problem.expected(problem.w.abs(), 2, 0.5, 6, 5).first, kLossRounding);
  problem.w[2] = 0;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("sharpness_adaptive", objective, settings, 5);
  const Quantity& loose = quantity(result, "worst_l2_m6_5e-1");
  EXPECT_EQ(loose.definition, "adaptive-worst-unprojected");
  // A first step of 2 rho, then momentum: far out.
  for (const double norm : attribute<std::vector<double>>(result, "worst_l2_m6_5e-1_group_norms"))
    EXPECT_GT(norm, 1);
  EXPECT_GT(loose.value[0], 2 * problem.expected(problem.w.abs(), 2, 0.5, 6, 5).first);
  EXPECT_NEAR(quantity(result, "worst_linf_m6_1e-3").value[0],
              problem.expected(problem.w.abs(), 1, 1e-3, 6, 5).first,
              kLossRounding);  // clamping needs no quotient
}

TEST(SharpnessAdaptive, RestartsFindAtLeastAsMuchAndHelpWhereThereIsNoGradient) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const auto worst = [&](const std::string& restarts) {
    return run_probe("sharpness_adaptive", objective,
                     {"measures=worst_l2", "worst_l2_rhos=[2.0]", "logits=plain", "restarts=" + restarts})
        .quantities[0]
        .value[0];
  };
  EXPECT_GE(worst("4"), worst("1"));
  // Every example meets its target exactly, and every way leads up.
  const at::Tensor eye = at::eye(2, at::kDouble);
  Objective flat(std::make_shared<testing::LinearModel>(eye.clone()), LossKind::mse, eye.repeat({4, 1}),
                 at::arange(8).remainder(2), 8);
  const std::vector<std::string> settings = {"measures=worst_l2", "logits=plain", "scale=standard"};
  const ProbeResult alone = run_probe("sharpness_adaptive", flat, settings);
  EXPECT_EQ(alone.status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(alone.quantities[0].value[0]));
  EXPECT_FALSE(alone.message.empty());
  std::vector<std::string> twice = settings;
  twice.emplace_back("restarts=2");
  const ProbeResult found = run_probe("sharpness_adaptive", flat, twice);
  EXPECT_EQ(found.status, ProbeStatus::ok);
  EXPECT_GT(found.quantities[0].value[0], 0);
}

TEST(SharpnessAdaptive, OfOneExampleHasNoErrorOverGroups) {
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({3, 4})), LossKind::mse,
                      testing::sine_numbers({1, 4}, 7), at::zeros({1}, at::kLong), 1);
  const ProbeResult result = run_probe("sharpness_adaptive", objective, {"measures=[\"worst_l2\"]"});
  EXPECT_EQ(result.quantities.front().status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(result.quantities.front().value[0]));
  EXPECT_EQ(result.message, "only one group of examples");
}

TEST(SharpnessAdaptive, ALossBeyondAllNumbersIsNonfinite) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const at::Tensor before = objective.parameters().gather();
  const ProbeResult result =
      run_probe("sharpness_adaptive", objective,
                {"logits=plain", "worst_l2_rhos=[0.5, 1e200]", "average_l2_rhos=[0.1, 1e200]",
                 "measures=[\"worst_l2\", \"average_l2\"]"});
  EXPECT_EQ(result.status, ProbeStatus::nonfinite);
  for (const std::string name : {"worst_l2_m11_1e200", "average_l2_1e200"}) {
    EXPECT_EQ(quantity(result, name).status, ProbeStatus::nonfinite);
    EXPECT_TRUE(std::isnan(quantity(result, name).value[0]));
  }
  EXPECT_EQ(quantity(result, "worst_l2_m11_5e-1").status, ProbeStatus::ok);
  EXPECT_EQ(quantity(result, "average_l2_1e-1").status, ProbeStatus::ok);
  EXPECT_TRUE(at::equal(objective.parameters().gather(), before));
}

TEST(SharpnessAdaptive, CountsItsPassesAsItForecasts) {
  const AffineSquares problem;
  Objective objective = problem.objective();
  const ProbeResult result =
      run_probe("sharpness_adaptive", objective, {"group_size=23", "iterations=10", "draws=5"});
  // Two groups of 11 of the 23 examples; two worst cases and two kinds of logits, 11 evaluations each.
  EXPECT_NEAR(attribute<double>(result, "gradients"), 4 * 11 * 22.0 / 23, 1e-12);
  EXPECT_EQ(attribute<double>(result, "forwards"), 4 * 6);
  SharpnessAdaptiveOptions options;
  options.iterations = 10;
  options.draws = 5;
  EXPECT_EQ(make_sharpness_adaptive(options)->expected_cost().gradients, 4 * 11 + 4 * 6.0 / 3);
}

}  // namespace
}  // namespace basin
