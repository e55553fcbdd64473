// Random directions against norms by hand; coordinates and projections against closed forms.
#include "landscape/directions.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "landscape/affine_frame.h"

namespace basin::testing {
namespace {

using ::testing::ElementsAre;

constexpr double kRounding = 1e-9;  // the guard 1e-10 in the denominator is of this size

at::Tensor leaf(std::initializer_list<double> numbers, at::IntArrayRef shape) {
  return at::tensor(numbers, at::kDouble).reshape(shape);
}

/// Two neurons of two inputs, the second of zeros; their biases; a convolution of two 1x2 filters.
ParameterVector three_tensors() {
  return ParameterVector({{"fc.weight", "fc", ParameterKind::weight, leaf({3, 4, 0, 0}, {2, 2})},
                          {"fc.bias", "fc", ParameterKind::bias, leaf({-2, 5}, {2})},
                          {"conv.weight", "conv", ParameterKind::weight, leaf({0, 6, 8, 0}, {2, 1, 1, 2})}});
}

std::vector<double> normalised(const std::string& norm, const std::string& ignore) {
  const ParameterVector vector = three_tensors();
  const at::Tensor d = leaf({1, 0, 1, 1, 2, -1, 3, 4, 0, -2}, {10});
  const at::Tensor found = normalised_direction(vector, vector.gather(), d, {norm, ignore});
  return {found.const_data_ptr<double>(), found.const_data_ptr<double>() + found.numel()};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kRounding) << i;
}

TEST(Directions, FilterNormalisationByHand) {
  // |w| of the rows: 5 and 0; |d|: 1 and sqrt 2. Filters: |w| = 6 and 8, |d| = 5 and 2. Biases: one by one.
  expect_near(normalised("filter", "biasbn"), {5, 0, 0, 0, 0, 0, 3.6, 4.8, 0, -8});
  expect_near(normalised("filter", "none"), {5, 0, 0, 0, 2, -5, 3.6, 4.8, 0, -8});
}

TEST(Directions, LayerNormalisationByHand) {
  const double fc = 5 / std::sqrt(3.0), bias = std::sqrt(29.0 / 5), conv = 10 / std::sqrt(29.0);
  expect_near(normalised("layer", "none"),
              {fc, 0, fc, fc, 2 * bias, -bias, 3 * conv, 4 * conv, 0, -2 * conv});
  expect_near(normalised("layer", "biasbn"), {fc, 0, fc, fc, 0, 0, 3 * conv, 4 * conv, 0, -2 * conv});
}

TEST(Directions, UnitAndNone) {
  const double length = std::sqrt(32.0);  // without the biases
  expect_near(normalised("unit", "biasbn"),
              {1 / length, 0, 1 / length, 1 / length, 0, 0, 3 / length, 4 / length, 0, -2 / length});
  EXPECT_THAT(normalised("none", "none"), ElementsAre(1, 0, 1, 1, 2, -1, 3, 4, 0, -2));
}

TEST(Directions, ComeFromTheSeedAlone) {
  const ParameterVector vector({{"w", "w", ParameterKind::weight, at::ones({100, 40}, at::kDouble)}});
  const at::Tensor a = random_direction(vector, vector.gather(), {"none", "biasbn"}, 1),
                   b = random_direction(vector, vector.gather(), {"none", "biasbn"}, 2);
  EXPECT_TRUE(at::equal(a, random_direction(vector, vector.gather(), {"none", "biasbn"}, 1)));
  // 4,000 standard normals: mean within 4 / sqrt(4000), variance within 4 sqrt(2 / 4000), cosine likewise.
  EXPECT_NEAR(a.mean().item<double>(), 0, 0.064);
  EXPECT_NEAR(a.var().item<double>(), 1, 0.09);
  EXPECT_NEAR((a * b).mean().item<double>(), 0, 0.064);
}

// Six entries, of which four count; the last two are buffers.
AffineFrame oblique_frame() {
  AffineFrame frame(leaf({1, 2, 3, 4, 5, 6}, {6}), 4);
  frame.add_direction(leaf({1, 1, 0, 0}, {4}));
  frame.add_point(leaf({1, 3, 3, 4, 9, 9}, {6}));  // step (0, 1, 0, 0)
  return frame;
}

TEST(AffineFrame, PlacesPointsAndDirections) {
  const at::Tensor place = oblique_frame().at({2, 0.5});
  EXPECT_TRUE(at::equal(place, leaf({3, 4.5, 3, 4, 7, 7.5}, {6})));
  EXPECT_TRUE(at::equal(oblique_frame().at({0, 0}), leaf({1, 2, 3, 4, 5, 6}, {6})));
}

// w = w_0 + 2 d_1 - 3 d_2 + (0, 0, 3, 4), the rest orthogonal to both, which are at 45 degrees.
TEST(AffineFrame, ProjectsByLeastSquaresOnObliqueAxes) {
  const AffineFrame frame = oblique_frame();
  const AffineFrame::Projection found = frame.project(leaf({3, 1, 6, 8, 0, 0}, {6}));
  // A 2 x 2 system of condition 7 in float64.
  EXPECT_NEAR(found.coordinates[0], 2, 1e-14);
  EXPECT_NEAR(found.coordinates[1], -3, 1e-14);
  EXPECT_NEAR(found.distance, 5, 1e-14);
  EXPECT_NEAR(frame.length(0), std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(frame.cosine(0, 1), std::sqrt(0.5), 1e-15);
}

TEST(GridValues, HaveTheirEndsAndWhatTheyMustHold) {
  EXPECT_THAT(grid_values(-1, 1, 3, {0}), ElementsAre(-1, 0, 1));
  EXPECT_THAT(grid_values(-0.25, 1.25, 7, {0, 1}), ElementsAre(-0.25, 0, 0.25, 0.5, 0.75, 1, 1.25));
  EXPECT_THAT(grid_values(-1, 2, 3, {0, 1, 5}), ElementsAre(-1, 0, 0.5, 1, 2));
  for (const double value : grid_values(-0.3, 1.2, 31, {0, 1})) {  // 0 and 1 are on it, up to rounding
    if (std::abs(value) < 0.01) {
      EXPECT_EQ(value, 0);
    }
    if (std::abs(value - 1) < 0.01) {
      EXPECT_EQ(value, 1);
    }
  }
  EXPECT_EQ(grid_values(-0.3, 1.2, 31, {0, 1}).size(), 31u);
}

}  // namespace
}  // namespace basin::testing
