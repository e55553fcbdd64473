#include "landscape/ball_maximum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace basin {
namespace {

at::Tensor numbers(int64_t n, double phase) { return at::sin(at::arange(n, at::kDouble) * 1.7 + phase); }

/// 1/2 u'Hu + g'u with a diagonal H.
struct Quadratic {
  at::Tensor h, g;
  BallFunction function() const {
    return [this](const at::Tensor& u, at::Tensor& gradient) {
      gradient = h * u + g;
      return value(u);
    };
  }
  double value(const at::Tensor& u) const { return (0.5 * h * u * u + g * u).sum().item<double>(); }
  /// Over |u| <= radius: u = (mu - H)^-1 g with the mu >= max h for which |u| is the radius, by bisection.
  double maximum_in_ball(double radius) const {
    double low = h.max().item<double>(), high = low + g.norm().item<double>() / radius;
    for (int i = 0; i < 200; ++i) {
      const double mu = (low + high) / 2;
      ((g / (mu - h)).norm().item<double>() > radius ? low : high) = mu;
    }
    return value(g / (high - h));
  }
};

TEST(BallMaximum, ChecksAtTheSharesOfThePaper) {
  // Croce and Hein, section 3: 0, 22, 41, 57, 70, 80, 87, 93, 99 of 100 iterations.
  EXPECT_EQ(apgd_checkpoints(100), std::vector<int64_t>({22, 41, 57, 70, 80, 87, 93, 99}));
  EXPECT_EQ(apgd_checkpoints(20), std::vector<int64_t>({5, 9, 12, 14, 16, 18, 19, 20}));
  EXPECT_EQ(apgd_checkpoints(1), std::vector<int64_t>({1}));
}

TEST(BallMaximum, ConvexQuadraticEndsInACornerOfTheCube) {
  const Quadratic q{at::linspace(0.1, 3, 40, at::kDouble), numbers(40, 0.3)};
  for (const double size : {1e-9, 1.0, 1e9}) {  // the flatness of f must not matter
    const BallFunction scaled = [&](const at::Tensor& u, at::Tensor& gradient) {
      const double value = q.function()(u, gradient);
      gradient = gradient * size;
      return value * size;
    };
    const BallMaximum found =
        maximise_in_ball(scaled, at::zeros({40}, at::kDouble), {BallNorm::linf, 0.5, 20});
    const double expected = (0.125 * q.h + 0.5 * q.g.abs()).sum().item<double>();
    EXPECT_NEAR(found.value / size, expected, 1e-12 * expected);
    EXPECT_EQ(ball_norm(BallNorm::linf, found.point), 0.5);
    EXPECT_EQ(found.evaluations, 21);
    EXPECT_EQ(found.start_value, 0);
  }
}

TEST(BallMaximum, QuadraticsReachTheMaximumOfTheBall) {
  // Convex, indefinite, and a summit inside of a wide ball.
  const Quadratic convex{at::linspace(0.1, 3, 30, at::kDouble), numbers(30, 0.3)};
  const Quadratic saddle{at::linspace(-2, 2, 30, at::kDouble), numbers(30, 0.9)};
  for (const Quadratic& q : {convex, saddle}) {
    for (const double radius : {0.3, 1.0, 3.0}) {
      const double expected = q.maximum_in_ball(radius);
      const BallFunction f = q.function();
      const BallMaximum twenty =
          maximise_in_ball(f, at::zeros({30}, at::kDouble), {BallNorm::l2, radius, 20});
      const BallMaximum many = maximise_in_ball(f, at::zeros({30}, at::kDouble), {BallNorm::l2, radius, 300});
      EXPECT_LE(many.value, expected * (1 + 1e-12)) << radius;  // feasible points alone
      EXPECT_LE(ball_norm(BallNorm::l2, many.point), radius * (1 + 1e-12));
      // Long steps, projected, are a power iteration of the curvature: 20 of them miss 4e-5 in the widest
      // ball, 300 nothing but rounding.
      EXPECT_GE(twenty.value, expected * (1 - 1e-4)) << radius;
      EXPECT_GE(many.value, expected * (1 - 1e-12)) << radius;
    }
  }
}

TEST(BallMaximum, KeepsTheBestPointWhereStepsOvershoot) {
  // A summit inside of the ball, beyond which every long step falls off.
  const Quadratic q{at::full({5}, -100.0, at::kDouble), at::full({5}, 1.0, at::kDouble)};
  const BallFunction f = q.function();
  for (const BallNorm norm : {BallNorm::l2, BallNorm::linf}) {
    const BallMaximum found = maximise_in_ball(f, at::zeros({5}, at::kDouble), {norm, 1, 200});
    const double expected = 0.5 * 5 / 100;
    EXPECT_LE(found.value, expected * (1 + 1e-12));
    EXPECT_GT(found.value, 0.9 * expected);
    EXPECT_NEAR(found.value, q.value(found.point), 1e-15);  // the point is the one of the value
  }
}

TEST(BallMaximum, GrowsWithTheRadius) {
  const Quadratic q{at::linspace(-2, 2, 30, at::kDouble), numbers(30, 0.9)};
  const BallFunction f = q.function();
  for (const BallNorm norm : {BallNorm::l2, BallNorm::linf}) {
    double last = 0;
    for (const double radius : {0.01, 0.1, 0.5, 1.0, 2.0}) {
      const double value = maximise_in_ball(f, at::zeros({30}, at::kDouble), {norm, radius, 20}).value;
      EXPECT_GT(value, last) << radius;
      last = value;
    }
  }
}

TEST(BallMaximum, LeavesTheBallOnlyWhenTold) {
  const Quadratic q{at::zeros({4}, at::kDouble), numbers(4, 0.1)};
  const BallFunction f = q.function();
  BallSearch search{BallNorm::l2, 0.5, 20};
  EXPECT_NEAR(maximise_in_ball(f, at::zeros({4}, at::kDouble), search).value, 0.5 * q.g.norm().item<double>(),
              1e-14);
  search.project = false;
  const BallMaximum loose = maximise_in_ball(f, at::zeros({4}, at::kDouble), search);
  EXPECT_GT(ball_norm(BallNorm::l2, loose.point), 0.5);
}

TEST(BallMaximum, SaysWhereThereIsNoGradientAndWhereNothingIsFinite) {
  const BallFunction flat = [](const at::Tensor& u, at::Tensor& g) {
    g = u.clone();
    return 0.5 * u.square().sum().item<double>();
  };
  const BallMaximum nowhere = maximise_in_ball(flat, at::zeros({3}, at::kDouble), {BallNorm::l2, 1, 20});
  EXPECT_TRUE(nowhere.zero_gradient);
  EXPECT_EQ(nowhere.evaluations, 1);
  const BallFunction cliff = [](const at::Tensor& u, at::Tensor& g) {
    g = at::ones_like(u);
    const double sum = u.sum().item<double>();
    return sum > 0.1 ? std::numeric_limits<double>::infinity() : sum;
  };
  const BallMaximum over = maximise_in_ball(cliff, at::zeros({3}, at::kDouble), {BallNorm::linf, 1, 20});
  EXPECT_TRUE(over.nonfinite);
  EXPECT_EQ(over.evaluations, 2);
}

}  // namespace
}  // namespace basin
