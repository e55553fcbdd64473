// Principal directions of paths whose components are known.
#include "landscape/trajectory_plane.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/seed.h"
#include "tests/support/message_of.h"

namespace basin::testing {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kRounding = 1e-12;  // an 8 x 8 eigenproblem of numbers of order 10 in float64

// Once round an ellipse with half axes 3 and 2 in the plane of two orthonormal vectors, out of it by 0.5 up
// and down in turn, around `centre`; two buffers behind, which don't count.
constexpr int kSteps = 8;
const std::vector<double> kFirst = {0.6, 0.8, 0, 0, 0}, kSecond = {0, 0, 0.8, -0.6, 0};

std::vector<at::Tensor> ellipse(double centre) {
  std::vector<at::Tensor> states;
  const at::Tensor first = at::tensor(kFirst, at::kDouble), second = at::tensor(kSecond, at::kDouble);
  for (int t = 0; t < kSteps; ++t) {
    const double angle = 2 * kPi * t / kSteps;
    at::Tensor weights = first * (3 * std::cos(angle)) + second * (2 * std::sin(angle)) + centre;
    weights[4] += t % 2 == 0 ? 0.5 : -0.5;
    states.push_back(at::cat({weights, at::full({2}, 100.0 * t, at::kDouble)}));
  }
  return states;
}

TEST(TrajectoryPlane, FindsTheAxesOfAnEllipse) {
  const std::vector<at::Tensor> states = ellipse(7);
  const TrajectoryPlane plane = trajectory_plane(states, mean_state(states), 5, 2);
  // Sums over a round: 8 a^2 / 2 = 36, 8 b^2 / 2 = 16, 8 / 4 = 2.
  EXPECT_NEAR(plane.share[0], 36.0 / 54, kRounding);
  EXPECT_NEAR(plane.share[1], 16.0 / 54, kRounding);
  EXPECT_NEAR(plane.share[2], 2.0 / 54, kRounding);
  for (int t = 0; t < kSteps; ++t) {
    const double angle = 2 * kPi * t / kSteps;
    const AffineFrame::Projection& point = plane.path[static_cast<size_t>(t)];
    EXPECT_NEAR(point.coordinates[0], 3 * std::cos(angle), kRounding);  // the first is positive
    EXPECT_NEAR(std::abs(point.coordinates[1]), std::abs(2 * std::sin(angle)), kRounding);
    EXPECT_NEAR(point.distance, 0.5, kRounding);
  }
  EXPECT_NEAR(plane.frame.length(0), 1, kRounding);
  EXPECT_NEAR(plane.frame.cosine(0, 1), 0, kRounding);
}

// About the last point, far from the mean: the origin of the plane is that very point.
TEST(TrajectoryPlane, StandsAboutItsCentre) {
  const std::vector<at::Tensor> states = ellipse(0);
  const TrajectoryPlane plane = trajectory_plane(states, states.back(), 5, 2);
  EXPECT_TRUE(at::equal(plane.frame.at({0, 0}), states.back()));
  EXPECT_NEAR(plane.path.back().coordinates[0], 0, kRounding);
  EXPECT_NEAR(plane.path.back().distance, 0, kRounding);
  double total = 0, by_hand = 0;
  for (size_t i = 0; i < plane.path.size(); ++i) {
    total += plane.path[i].distance * plane.path[i].distance;
    for (const double coordinate : plane.path[i].coordinates) total += coordinate * coordinate;
    by_hand += (states[i] - states.back()).narrow(0, 0, 5).square().sum().item<double>();
  }
  EXPECT_NEAR(total, by_hand, 1e-10);  // Pythagoras over eight points
  // The directions are principal about that point, not about the mean: singular values of the steps from it.
  const at::Tensor steps = at::stack(states).narrow(1, 0, 5) - states.back().narrow(0, 0, 5);
  const at::Tensor squares = at::linalg_svdvals(steps).square();
  for (int64_t m = 0; m < 2; ++m) {
    EXPECT_NEAR(plane.share[static_cast<size_t>(m)], (squares[m] / squares.sum()).item<double>(), kRounding);
  }
}

// Antognini and Sohl-Dickstein 2018: component m of a long random walk in many dimensions has 6 / (pi m)^2.
TEST(TrajectoryPlane, SharesOfARandomWalk) {
  at::Generator generator = make_generator(4);
  at::Tensor place = at::zeros({4000}, at::kDouble);
  std::vector<at::Tensor> states;
  for (int t = 0; t < 150; ++t) states.push_back(place = place + at::randn({4000}, generator, at::kDouble));
  const TrajectoryPlane plane = trajectory_plane(states, mean_state(states), 4000, 2);
  // Relative: sqrt(2 / 4000) = 2 % from the dimensions, 1 % from the length.
  EXPECT_NEAR(plane.share[0] * kPi * kPi / 6, 1, 0.04);
  EXPECT_NEAR(plane.share[1] * 4 * kPi * kPi / 6, 1, 0.06);
}

TEST(TrajectoryPlane, ALineIsNoPlane) {
  std::vector<at::Tensor> states;
  for (int t = 0; t < 5; ++t) states.push_back(at::arange(6, at::kDouble) * t);
  EXPECT_THAT(message_of([&] { trajectory_plane(states, states.back(), 6, 2); }),
              ::testing::HasSubstr("doesn't span 2 directions"));
  states.resize(2);
  EXPECT_THAT(message_of([&] { trajectory_plane(states, states.back(), 6, 2); }),
              ::testing::HasSubstr("2 checkpoints"));
}

}  // namespace
}  // namespace basin::testing
