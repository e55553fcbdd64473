#include "landscape/curve.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/checkpoint.h"
#include "landscape/connectivity.h"
#include "landscape/curve_training.h"
#include "tests/support/analytic_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using testing::sine_numbers;

TEST(Curve, EndsAreTheNetworksBitForBit) {
  const at::Tensor start = sine_numbers({50}).to(at::kFloat), end = sine_numbers({50}, 100).to(at::kFloat);
  for (const CurveKind kind : {CurveKind::bezier, CurveKind::chain}) {
    for (int64_t bends = 1; bends <= 5; ++bends) {
      const Curve curve(kind, start, end, bends);
      for (int64_t k = 0; k < bends; ++k) curve.bend(k).fill_(NAN);
      EXPECT_TRUE(at::equal(curve.at(0).to(at::kFloat), start));
      EXPECT_TRUE(at::equal(curve.at(1).to(at::kFloat), end));
    }
  }
}

TEST(Curve, CoefficientsAreThoseOfThePaper) {
  const at::Tensor start = at::zeros({1}), end = at::ones({1});
  const Curve bezier(CurveKind::bezier, start, end, 1), cubic(CurveKind::bezier, start, end, 2);
  const Curve chain(CurveKind::chain, start, end, 1), long_chain(CurveKind::chain, start, end, 3);
  for (const double t : {0.0, 0.1, 0.25, 0.5, 0.8, 1.0}) {
    const double s = 1 - t;
    const std::vector<double> square{s * s, 2 * s * t, t * t},
        cube{s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t};
    const std::vector<double> hats{std::max(0.0, 1 - 2 * t), t <= 0.5 ? 2 * t : 2 * s,
                                   std::max(0.0, 2 * t - 1)};
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(bezier.coefficients(t)[k], square[k], 1e-15);  // some roundings of numbers below 1
      EXPECT_NEAR(chain.coefficients(t)[k], hats[k], 1e-15);
    }
    for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(cubic.coefficients(t)[k], cube[k], 1e-15);
  }
  EXPECT_EQ(long_chain.coefficients(0.75), (std::vector<double>{0, 0, 0, 1, 0}));
  EXPECT_EQ(long_chain.coefficients(0.625), (std::vector<double>{0, 0, 0.5, 0.5, 0}));
}

TEST(Curve, BeginsAsTheStraightLine) {
  const at::Tensor start = sine_numbers({7}), end = sine_numbers({7}, 100);
  for (const CurveKind kind : {CurveKind::bezier, CurveKind::chain}) {
    const Curve curve(kind, start, end, 3);
    for (const double t : {0.1, 0.25, 0.37, 0.9})
      EXPECT_TRUE(at::allclose(curve.at(t), (1 - t) * start + t * end, 0, 1e-15));
  }
}

TEST(Curve, RefusesWhatIsNoCurve) {
  EXPECT_EQ(testing::message_of([] { curve_kind("spline"); }),
            "unknown curve \"spline\"; known: bezier, chain");
  EXPECT_EQ(testing::message_of([] { Curve(CurveKind::chain, at::zeros({1}), at::zeros({1}), 0); }),
            "bends = 0 violates bends >= 1");
}

// A ridge of height 1 across the way from (-1, 0) to (1, 0), a little to one side, in a wide valley. On the
// straight way it is exp(-0.04) = 0.96 high.
double ridge(double x, double y) {
  const double d = y - 0.1;
  return std::exp(-4 * (x * x + d * d)) + 0.02 * y * y;
}

// Times 1 + noise of each example, whose mean is 0 over the 8 of them.
double noisy_ridge(const at::Tensor& point, const at::Tensor& index, at::Tensor& gradient) {
  const double x = point[0].item<double>(), y = point[1].item<double>(), d = y - 0.1;
  const double bump = std::exp(-4 * (x * x + d * d));
  const double factor = 1 + 0.1 * ((index.to(at::kDouble) - 3.5) / 3.5).mean().item<double>();
  gradient = factor * at::tensor({-8 * x * bump, -8 * d * bump + 0.04 * y}, at::kDouble);
  return factor * ridge(x, y);
}

Curve ridge_curve(CurveKind kind, int64_t bends = 1) {
  // The last entry is no parameter and doesn't move.
  return {kind, at::tensor({-1.0, 0.0, 5.0}, at::kDouble), at::tensor({1.0, 0.0, 7.0}, at::kDouble), bends};
}

CurveTrainingOptions ridge_options() {
  return {.epochs = 500, .batch_size = 4, .learning_rate = 0.3, .momentum = 0.5};
}

double highest_on(const Curve& curve) {
  double highest = 0;
  for (int i = 0; i <= 60; ++i) {
    const at::Tensor point = curve.at(i / 60.0);
    highest = std::max(highest, ridge(point[0].item<double>(), point[1].item<double>()));
  }
  return highest;
}

// E L(theta(t)) of the curve whose bend is (0, height).
double mean_over_t(CurveKind kind, double height) {
  const Curve curve = ridge_curve(kind);
  curve.bend(0)[1] = height;
  double sum = 0;
  for (int i = 0; i < 200; ++i) {
    const at::Tensor point = curve.at((i + 0.5) / 200);
    sum += ridge(point[0].item<double>(), point[1].item<double>()) / 200;
  }
  return sum;
}

TEST(CurveTraining, GoesRoundARidge) {
  for (const CurveKind kind : {CurveKind::bezier, CurveKind::chain}) {
    Curve curve = ridge_curve(kind);
    EXPECT_GT(highest_on(curve), 0.95);
    CurveTraining training(curve, 2, 8, ridge_options(), 1);
    while (!training.ended()) training.step(noisy_ridge);
    EXPECT_FALSE(training.diverged());
    EXPECT_EQ(training.updates_done(), 1000);
    double best = 0;  // by looking at all of them
    for (int step = 1; step <= 60; ++step)
      if (mean_over_t(kind, -0.05 * step) < mean_over_t(kind, best)) best = -0.05 * step;
    // Steps of 0.05, and the noise of the last updates, whose rate goes to 0.
    EXPECT_NEAR(curve.bend(0)[1].item<double>(), best, 0.1);
    // The curve with the least mean, bend at -2.44 or -1.65, is nowhere above 0.031 or 0.055.
    EXPECT_LT(highest_on(curve), 0.06);
    EXPECT_EQ(curve.bend(0)[2].item<double>(), 6);
    EXPECT_TRUE(at::equal(curve.at(0), at::tensor({-1.0, 0.0, 5.0}, at::kDouble)));
    EXPECT_TRUE(at::equal(curve.at(1), at::tensor({1.0, 0.0, 7.0}, at::kDouble)));
    EXPECT_EQ(training.epoch_losses().size(), 500);
    EXPECT_LT(training.epoch_losses().back(), training.epoch_losses().front() / 2);
  }
}

// The first of one updates has the whole rate, and momentum begins at 0: the step is -rate dL/dP.
TEST(CurveTraining, StepsAlongTheDerivativeByTheBends) {
  const double rate = 1e-3;
  for (const CurveKind kind : {CurveKind::bezier, CurveKind::chain}) {
    Curve curve = ridge_curve(kind, 2);
    curve.bend(0)[1] = 0.3;
    CurveTraining training(curve, 2, 4,
                           {.epochs = 1, .batch_size = 4, .learning_rate = rate, .momentum = 0.9}, 7);
    const auto whole_batch = [](const at::Tensor& point, const at::Tensor& index, at::Tensor& gradient) {
      EXPECT_EQ(index.numel(), 4);
      return noisy_ridge(point, at::arange(8), gradient);
    };
    const double t = training.draw(0);
    std::vector<at::Tensor> expected;
    for (int64_t k = 0; k < 2; ++k) {
      at::Tensor derivative = at::zeros({2}, at::kDouble);
      for (int64_t i = 0; i < 2; ++i) {
        const auto loss_with = [&](double step) {
          const at::Tensor entry = curve.bend(k)[i];
          const double was = entry.item<double>();
          entry.fill_(was + step);
          const at::Tensor point = curve.at(t);
          entry.fill_(was);
          return ridge(point[0].item<double>(), point[1].item<double>());
        };
        derivative[i] = (loss_with(1e-5) - loss_with(-1e-5)) / 2e-5;
      }
      expected.push_back(curve.bend(k).narrow(0, 0, 2) - rate * derivative);
    }
    EXPECT_GT(t, 0);
    EXPECT_LT(t, 1);
    training.step(whole_batch);
    for (int64_t k = 0; k < 2; ++k) {
      // Central differences of a third derivative of 100: 2e-9, times the rate.
      EXPECT_TRUE(at::allclose(curve.bend(k).narrow(0, 0, 2), expected[static_cast<size_t>(k)], 0, 1e-11));
    }
    EXPECT_TRUE(training.ended());
  }
}

TEST(CurveTraining, DrawsTheWholeCurveEvenly) {
  Curve curve = ridge_curve(CurveKind::bezier);
  const CurveTraining training(curve, 2, 8, ridge_options(), 1);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 4000; ++i) {
    sum += training.draw(i);
    squares += training.draw(i) * training.draw(i);
  }
  // Five standard errors of U(0,1)'s first moments, 1/2 and 1/3: sqrt(1/12/4000), sqrt(4/45/4000).
  EXPECT_NEAR(sum / 4000, 0.5, 0.023);
  EXPECT_NEAR(squares / 4000, 1.0 / 3, 0.024);
}

TEST(CurveTraining, GoesOnFromAFileWithTheSameBits) {
  const testing::TemporaryFolder folder;
  const CurveTrainingOptions options{.epochs = 10, .batch_size = 3, .learning_rate = 0.3, .momentum = 0.5};
  Curve straight = ridge_curve(CurveKind::bezier, 2);
  CurveTraining undisturbed(straight, 2, 8, options, 1);
  while (!undisturbed.ended()) undisturbed.step(noisy_ridge);
  for (const int64_t cut : {0, 1, 7}) {
    Curve first = ridge_curve(CurveKind::bezier, 2), second = ridge_curve(CurveKind::bezier, 2);
    CurveTraining before(first, 2, 8, options, 1), after(second, 2, 8, options, 1);
    for (int64_t i = 0; i < cut; ++i) before.step(noisy_ridge);
    Checkpoint checkpoint;
    before.save(checkpoint);
    write_checkpoint(folder / "curve.h5", checkpoint);
    after.restore(read_checkpoint(folder / "curve.h5"));
    EXPECT_EQ(after.updates_done(), cut);
    while (!after.ended()) after.step(noisy_ridge);
    for (int64_t k = 0; k < 2; ++k) EXPECT_TRUE(at::equal(second.bend(k), straight.bend(k)));
    EXPECT_EQ(after.epoch_losses(), undisturbed.epoch_losses());
  }
}

TEST(CurveTraining, EndsWhereTheLossIsNotFinite) {
  Curve curve = ridge_curve(CurveKind::bezier);
  CurveTraining training(curve, 2, 8, ridge_options(), 1);
  int64_t calls = 0;
  const auto breaks = [&](const at::Tensor& point, const at::Tensor& index, at::Tensor& gradient) {
    const double loss = noisy_ridge(point, index, gradient);
    return ++calls > 3 ? NAN : loss;
  };
  for (int i = 0; i < 3; ++i) training.step(breaks);
  const at::Tensor before = curve.bend(0).clone();
  training.step(breaks);
  EXPECT_TRUE(training.ended());
  EXPECT_TRUE(training.diverged());
  EXPECT_TRUE(at::equal(curve.bend(0), before));
}

}  // namespace
}  // namespace basin
