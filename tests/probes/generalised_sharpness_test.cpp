// Sharpness in other norms on a network whose Hessian is known, I (x) M with M = X'X / n.
#include "probes/generalised_sharpness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "tests/probes/known_gradients.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/matrices.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

/// A mean that all inputs share couples the weights: without it M is nearly diagonal, and then almost every corner of the
/// cube is a local maximum.
at::Tensor inputs() {
  return at::randn({40, 5}, make_generator(3), at::kDouble) + at::linspace(0.5, 1.5, 5, at::kDouble);
}

struct CoupledGradients : testing::KnownGradients {
  CoupledGradients() : KnownGradients(inputs()) {}
};

at::Tensor second_moments(const CoupledGradients& known) { return known.x.t().mm(known.x) / known.x.size(0); }

// d'Hd = sum_c d_c' M d_c: every row of W by itself has the corner that is largest.
TEST(GeneralisedSharpness, OfTheCubeIsThatOfTheBestSigns) {
  CoupledGradients known;
  const double largest = testing::largest_corner(second_moments(known));
  const ProbeResult result =
      run_probe("generalised_sharpness", known.objective, {"restarts=40", "tolerance=1e-8"});
  EXPECT_EQ(result.status, ProbeStatus::ok);
  EXPECT_NEAR(quantity(result, "s_linf").value[0], 3 * largest, 1e-10);
  EXPECT_EQ(quantity(result, "s_linf").uncertainty_kind, UncertaintyKind::lower_bound);
  EXPECT_EQ(attribute<std::vector<double>>(result, "linf_start_values").size(), 41u);
  // One start finds a stationary point, and not more.
  const ProbeResult single = run_probe("generalised_sharpness", known.objective, {"restarts=0"});
  EXPECT_LE(quantity(single, "s_linf").value[0], 3 * largest + 1e-10);
  EXPECT_TRUE(std::isnan(quantity(single, "s_linf").uncertainty[0])) << "one search has no spread";
}

// tr D M D' over D [3, 5] with D D' <= 1 is the sum of M's three largest eigenvalues (Ky Fan).
TEST(GeneralisedSharpness, OfTheSpectralBallIsASumOfEigenvalues) {
  CoupledGradients known;
  const double expected = at::linalg_eigvalsh(second_moments(known)).narrow(0, 2, 3).sum().item<double>();
  const ProbeResult result = run_probe("generalised_sharpness", known.objective,
                                       {"restarts=4", "iterations=3000", "tolerance=1e-8"});
  // The gap of a search bounds how far it is from a stationary point: half of 1e-8 of the value, and some.
  EXPECT_NEAR(quantity(result, "s_spectral").value[0], expected, 1e-6 * expected);
}

TEST(GeneralisedSharpness, IsScaledByRateAndDualNormOfTheGradient) {
  CoupledGradients known;
  const ProbeResult result = run_probe("generalised_sharpness", known.objective);
  const at::Tensor g = known.gradients().mean(0);
  const double l1 = g.abs().sum().item<double>();
  // The nuclear norm of G from the eigenvalues of G G'.
  const at::Tensor matrix = g.reshape({3, 5});
  const double nuclear = at::linalg_eigvalsh(matrix.mm(matrix.t())).sqrt().sum().item<double>();
  EXPECT_NEAR(quantity(result, "dual_gradient_linf").value[0], l1, 1e-12);
  EXPECT_NEAR(quantity(result, "dual_gradient_spectral").value[0], nuclear, 1e-9);
  for (const auto& [name, norm] : {std::pair{"linf", l1}, {"spectral", nuclear}}) {
    const double s = quantity(result, std::string("s_") + name).value[0];
    EXPECT_NEAR(quantity(result, std::string("rate_s_") + name).value[0], 0.1 * s / norm, 1e-9);
  }
}

TEST(GeneralisedSharpness, WithoutAGradientHasNoScaledNumber) {
  Objective flat(std::make_shared<testing::LinearModel>(at::zeros({3, 5}, at::kDouble)), LossKind::mse,
                 at::zeros({10, 5}, at::kDouble), at::arange(10).remainder(3), 10);
  const ProbeResult result = run_probe("generalised_sharpness", flat);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(result, "s_linf").value[0], 0);
  EXPECT_EQ(quantity(result, "rate_s_linf").status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(quantity(result, "rate_s_linf").value[0]));
}

TEST(GeneralisedSharpness, ASearchThatWasStoppedSaysSo) {
  CoupledGradients known;
  const ProbeResult result = run_probe("generalised_sharpness", known.objective,
                                       {"iterations=1", "tolerance=1e-8", "norms=[\"spectral\"]"});
  EXPECT_EQ(result.status, ProbeStatus::not_converged);
  EXPECT_TRUE(std::isfinite(quantity(result, "s_spectral").value[0]));
}

}  // namespace
}  // namespace basin
