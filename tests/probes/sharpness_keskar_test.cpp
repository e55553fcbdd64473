#include "probes/sharpness_keskar.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/seed.h"
#include "landscape/random_subspace.h"
#include "tests/probes/golden_keskar.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

/// X = diag(d), two classes: L = 1/n sum_i 1/2 |d_i W_i - y_i|^2 is separable with curvatures d_i^2 / n.
struct Separable {
  at::Tensor d = at::linspace(0.5, 2, 6, at::kDouble), labels = at::arange(6).remainder(2);
  at::Tensor minimiser() const {
    return (at::one_hot(labels, 2).to(at::kDouble) / d.unsqueeze(1)).t().contiguous();
  }
  Objective objective(const at::Tensor& w) const {
    return Objective(std::make_shared<testing::LinearModel>(w.clone()), LossKind::mse, at::diag(d), labels,
                     4);
  }
  /// 100 sum_j (|g_j| b_j + h_j b_j^2 / 2) / (1 + L): each coordinate goes to the far end of the box.
  double phi(const at::Tensor& w, const at::Tensor& box) const {
    const at::Tensor residual = d * w - at::one_hot(labels, 2).to(at::kDouble).t();
    const double loss = 0.5 * residual.square().sum().item<double>() / 6;
    const at::Tensor gradient = d * residual / 6, curvature = (d * d / 6).expand_as(w);
    const at::Tensor rise = gradient.abs() * box + 0.5 * curvature * box * box;
    return 100 * rise.sum().item<double>() / (1 + loss);
  }
};

TEST(SharpnessKeskar, SeparableQuadraticInClosedForm) {
  const Separable problem;
  const at::Tensor w = problem.minimiser() + testing::sine_numbers({2, 6});
  Objective objective = problem.objective(w);
  const ProbeResult result = run_probe("sharpness_keskar", objective, {"spaces=[\"full\", \"relative\"]"});
  EXPECT_EQ(result.status, ProbeStatus::ok);
  for (const double eps : {1e-3, 5e-4}) {
    const std::string tail = eps == 1e-3 ? "1e-3" : "5e-4";
    const double full = problem.phi(w, eps * (w.abs() + 1)), relative = problem.phi(w, eps * w.abs());
    // The exact corner is reached; the loss difference keeps 1e-16 / 1e-3 of its digits.
    EXPECT_NEAR(quantity(result, "phi_full_" + tail).value[0], full, 1e-9 * full);
    EXPECT_NEAR(quantity(result, "phi_relative_" + tail).value[0], relative, 1e-9 * relative);
  }
  EXPECT_EQ(quantity(result, "phi_full_1e-3").uncertainty_kind, UncertaintyKind::lower_bound);
  EXPECT_EQ(attribute<std::vector<double>>(result, "phi_full_1e-3_start_values").size(), 2u);
  EXPECT_EQ(attribute<int64_t>(result, "gradients"), objective.gradients_done());
}

TEST(SharpnessKeskar, AtAMinimumItIsNotZero) {
  const Separable problem;
  const at::Tensor w = problem.minimiser();
  Objective objective = problem.objective(w);
  ASSERT_LT(objective.gradient().norm().item<double>(), 1e-15);  // the trap: from z = 0 no search would move
  const ProbeResult result = run_probe("sharpness_keskar", objective, {"spaces=full", "epsilons=[0.001]"});
  const double expected = problem.phi(w, 1e-3 * (w.abs() + 1));
  // The loss itself is near 0, so there is no cancellation; ten iterations reach the corner.
  EXPECT_NEAR(quantity(result, "phi_full_1e-3").value[0], expected, 1e-9 * expected);
}

std::shared_ptr<Model> golden_network() {
  const auto model =
      testing::make_test_model("mlp", {"hidden=[4]", "activation=tanh"}, testing::tiny_shape());
  ParameterVector(model->parameter_table()).scatter(testing::sine_numbers({55}));
  return model;
}

TEST(SharpnessKeskar, ReachesWhatScipyFinds) {
  Objective objective(golden_network(), LossKind::cross_entropy, testing::sine_numbers({20, 1, 3, 3}, 1000),
                      at::arange(20).remainder(3), 6);
  ASSERT_NEAR(objective.loss(), testing::kGoldenBaseLoss, 1e-13);
  for (const testing::GoldenPhi& golden : testing::kGoldenPhi) {
    const ProbeResult result =
        run_probe("sharpness_keskar", objective,
                  {fmt::format("spaces={}", golden.space), fmt::format("epsilons=[{}]", golden.eps)});
    const double phi = result.quantities.front().value[0];
    EXPECT_LE(phi, golden.maximum * (1 + 1e-7))
        << golden.space << golden.eps;  // a lower bound, to scipy's own stopping rule
    // As good as scipy's ten iterations; 1 %, because in wide boxes two codes take different ways up.
    EXPECT_GE(phi, golden.ten_from_corner * 0.99) << golden.space << golden.eps;
    if (golden.eps <= 0.02) {  // one maximum, and two starts find it
      EXPECT_NEAR(phi, golden.maximum, 1e-6 * golden.maximum) << golden.space << golden.eps;
    }
  }
}

TEST(SharpnessKeskar, BothStartsFindTheMaximumOfASmallBox) {
  Objective objective(golden_network(), LossKind::cross_entropy, testing::sine_numbers({20, 1, 3, 3}, 1000),
                      at::arange(20).remainder(3), 20);
  const ProbeResult result = run_probe("sharpness_keskar", objective, {"spaces=full", "epsilons=[0.001]"});
  // In unscaled variables ten iterations from a random point reach about half of it (scipy: 0.047 of 0.083).
  for (const double value : attribute<std::vector<double>>(result, "phi_full_1e-3_start_values")) {
    EXPECT_NEAR(value, testing::kGoldenPhi[0].maximum, 1e-6 * testing::kGoldenPhi[0].maximum);
  }
}

TEST(SharpnessKeskar, SubspaceMaximumByAllCorners) {
  // Cross entropy of a linear network is convex, so its maximum over a box is in a corner: all 8 are tried.
  const at::Tensor x = testing::sine_numbers({13, 4}), labels = at::arange(13).remainder(3);
  const at::Tensor w = testing::sine_numbers({3, 4}, 100);
  for (const std::string distribution : {"gaussian", "orthonormal"}) {
    Objective objective(std::make_shared<testing::LinearModel>(w.clone()), LossKind::cross_entropy, x, labels,
                        13);
    const ProbeResult result = run_probe(
        "sharpness_keskar", objective,
        {"spaces=subspace", "subspace_dim=3", "epsilons=[0.001]", "subspace_distribution=" + distribution},
        21);
    const RandomSubspace a(12, 3, subspace_distribution(distribution), derive_seed(21, "keskar-subspace", 0),
                           at::kDouble, at::kCPU);
    const at::Tensor box = 1e-3 * (at::linalg_pinv(a.matrix()).matmul(w.flatten()).abs() + 1);
    const double base = objective.loss();
    double best = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const at::Tensor sign = at::tensor(
          {corner & 1 ? 1.0 : -1.0, corner & 2 ? 1.0 : -1.0, corner & 4 ? 1.0 : -1.0}, at::kDouble);
      objective.parameters().scatter(w.flatten() + a.matrix().matmul(box * sign));
      best = std::max(best, 100 * (objective.loss() - base) / (1 + base));
    }
    const Quantity& phi = quantity(result, "phi_subspace_" + distribution + "_p3_1e-3");
    EXPECT_NEAR(phi.value[0], best, 1e-8 * best);
    EXPECT_EQ(phi.definition, "keskar-phi-subspace-" + distribution);
    EXPECT_EQ(attribute<std::string>(result, "subspace_distribution"), distribution);
  }
}

TEST(SharpnessKeskar, GaugesByTheGradientBoundAConvexLossFromBelow) {
  const Separable problem;
  const at::Tensor w = problem.minimiser() + testing::sine_numbers({2, 6});
  Objective objective = problem.objective(w);
  const at::Tensor residual = problem.d * w - at::one_hot(problem.labels, 2).to(at::kDouble).t();
  const double loss = 0.5 * residual.square().sum().item<double>() / 6;
  const at::Tensor box = 0.2 * (w.abs() + 1);
  const double first_order = 100 / (1 + loss) * (problem.d * residual / 6 * box).abs().sum().item<double>();
  const std::vector<std::string> settings = {"spaces=full", "epsilons=[0.2]"};
  const ProbeResult result = run_probe("sharpness_keskar", objective, settings);
  const auto one = [&](const std::string& name) {
    return attribute<std::vector<double>>(result, name).at(0);
  };
  EXPECT_NEAR(one("phi_full_2e-1_first_order"), first_order, 1e-12 * first_order);
  // A separable convex loss has its maximum at that corner.
  EXPECT_NEAR(one("phi_full_2e-1_signed_corner"), problem.phi(w, box), 1e-10);
  EXPECT_LT(one("phi_full_2e-1_first_order"), one("phi_full_2e-1_signed_corner"));
  EXPECT_LE(one("phi_full_2e-1_signed_corner"), quantity(result, "phi_full_2e-1").value[0]);
  const ProbeResult random =
      run_probe("sharpness_keskar", objective, {"spaces=full", "epsilons=[0.2]", "starts=random"});
  EXPECT_TRUE(std::isnan(attribute<std::vector<double>>(random, "phi_full_2e-1_signed_corner").at(0)));
}

TEST(SharpnessKeskar, RestartsBeginFromOtherRandomPoints) {
  Objective objective(golden_network(), LossKind::cross_entropy, testing::sine_numbers({20, 1, 3, 3}, 1000),
                      at::arange(20).remainder(3), 20);
  const auto values = [&](const std::string& restarts) {
    return attribute<std::vector<double>>(
        run_probe("sharpness_keskar", objective,
                  {"spaces=full", "epsilons=[0.5]", "iterations=2", "restarts=" + restarts}),
        "phi_full_5e-1_start_values");
  };
  const std::vector<double> one = values("1"), four = values("4");
  ASSERT_EQ(one.size(), 2u);  // random, signed_gradient
  ASSERT_EQ(four.size(), 5u);
  EXPECT_EQ(four.front(), one.front());
  EXPECT_EQ(four.back(), one.back());
  EXPECT_EQ(std::set<double>(four.begin(), four.end() - 1).size(), 4u);
}

TEST(SharpnessKeskar, DrawsGiveAMeanAndItsStandardError) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 20);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 20);
  const ProbeResult result = run_probe(
      "sharpness_keskar", objective,
      {"spaces=subspace", "subspace_dim=5", "epsilons=[0.001]", "draws=4", "starts=signed_gradient"});
  const Quantity& phi = result.quantities.front();
  const auto draws = attribute<std::vector<double>>(result, "phi_subspace_gaussian_p5_1e-3_start_values");
  ASSERT_EQ(draws.size(), 4u);
  const at::Tensor values = at::tensor(draws, at::kDouble);
  EXPECT_NEAR(phi.value[0], values.mean().item<double>(), 1e-12);
  EXPECT_NEAR(phi.uncertainty[0], values.std().item<double>() / 2, 1e-12);
  EXPECT_EQ(phi.uncertainty_kind, UncertaintyKind::standard_error);
}

TEST(SharpnessKeskar, SubspaceIsNoLargerThanTheSpace) {
  const Separable problem;
  Objective objective = problem.objective(problem.minimiser());
  const ProbeResult result =
      run_probe("sharpness_keskar", objective, {"spaces=subspace", "subspace_dim=100"});
  EXPECT_EQ(attribute<int64_t>(result, "subspace_dim"), 12);
}

TEST(SharpnessKeskar, SubspaceReachesWhatScipyFinds) {
  Objective objective(golden_network(), LossKind::cross_entropy, testing::sine_numbers({20, 1, 3, 3}, 1000),
                      at::arange(20).remainder(3), 6);
  for (const testing::GoldenSubspacePhi& golden : testing::kGoldenSubspacePhi) {
    const ProbeResult result =
        run_probe("sharpness_keskar", objective,
                  {"spaces=subspace", "subspace_dim=5", fmt::format("epsilons=[{}]", golden.eps)}, 21);
    // One maximum in a box so small, known to scipy's stopping rule.
    EXPECT_NEAR(result.quantities.front().value[0], golden.maximum, 1e-6 * golden.maximum) << golden.eps;
  }
}

TEST(SharpnessKeskar, Float32SeesAFlatNetwork) {
  // phi near 4e-5 %, a rise of the loss by 8e-7, some seven roundings of a mean loss kept in float32: the
  // trap that prints 0.00 for flat networks.
  const at::Tensor x = testing::sine_numbers({2000, 1, 3, 3}, 1000), labels = at::arange(2000).remainder(3);
  const auto phi = [&](at::ScalarType dtype) {
    const auto model = golden_network();
    model->to(dtype);
    Objective objective(model, LossKind::cross_entropy, x, labels, 100);
    return run_probe("sharpness_keskar", objective, {"spaces=relative", "epsilons=[2e-6]"})
        .quantities[0]
        .value[0];
  };
  const double exact = phi(at::kDouble);
  EXPECT_LT(exact, 1e-4);
  // Weights of 24 bits hold each step of 2e-6 of themselves to 1.5 %; over 55 of them and the losses of 2,000
  // examples most of it averages out.
  EXPECT_NEAR(phi(at::kFloat), exact, 0.05 * exact);
}

TEST(SharpnessKeskar, ASearchHangsOnItsOwnEpsAlone) {
  Objective objective(golden_network(), LossKind::cross_entropy, testing::sine_numbers({20, 1, 3, 3}, 1000),
                      at::arange(20).remainder(3), 20);
  for (const std::string space : {"full", "subspace", "relative"}) {
    const auto start_values = [&](const std::string& epsilons) {
      const ProbeResult result = run_probe(
          "sharpness_keskar", objective,
          {"epsilons=" + epsilons, "spaces=" + space, "subspace_dim=5", "starts=random", "iterations=1"});
      for (const Quantity& q : result.quantities) {
        if (q.name.find("2e-1") != std::string::npos) return q.value[0];
      }
      return std::numeric_limits<double>::quiet_NaN();
    };
    EXPECT_EQ(start_values("[0.2]"), start_values("[0.1, 0.2]")) << space;
  }
}

TEST(SharpnessKeskar, ZeroGradientHasNoCornerToStartFrom) {
  // Weights and labels for which the gradient vanishes exactly: W = 0 and every label's target met by none.
  const at::Tensor x = at::zeros({6, 4}, at::kDouble), labels = at::arange(6).remainder(2);
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({2, 4})), LossKind::mse, x,
                      labels, 6);
  const ProbeResult alone =
      run_probe("sharpness_keskar", objective, {"spaces=full", "epsilons=[0.001]", "starts=signed_gradient"});
  EXPECT_EQ(alone.status, ProbeStatus::not_resolved);
  EXPECT_FALSE(alone.message.empty());
  EXPECT_TRUE(std::isnan(alone.quantities[0].value[0]));
  const ProbeResult both = run_probe("sharpness_keskar", objective, {"spaces=full", "epsilons=[0.001]"});
  EXPECT_EQ(both.status, ProbeStatus::ok);
  EXPECT_EQ(both.quantities[0].value[0], 0);  // truly flat
  EXPECT_EQ(attribute<std::vector<std::string>>(both, "phi_full_1e-3_start_ends"),
            std::vector<std::string>({"stationary", "zero gradient"}));
}

TEST(SharpnessKeskar, RefusesEmptyAndRepeatedLists) {
  SharpnessKeskarOptions options;
  OptionTable table;
  bind_options(table, options);
  for (const char* text : {"epsilons=[]", "starts=[]", "spaces=[]", "epsilons=[0.001, 0.001]",
                           "starts=[\"random\", \"random\"]", "epsilons=[0.0]"}) {
    EXPECT_THROW(table.set_from_text(text, "test"), ConfigError) << text;
  }
  options.starts.clear();
  EXPECT_THROW(make_sharpness_keskar(options), ConfigError);
}

}  // namespace
}  // namespace basin
