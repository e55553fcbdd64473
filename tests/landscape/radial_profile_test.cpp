#include "landscape/radial_profile.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/seed.h"
#include "tests/support/analytic_models.h"

namespace basin {
namespace {

// L = 2 + w'Hw/2 with diagonal H: along d it reaches 2 + delta at sqrt(2 delta / d'Hd).
TEST(RadialProfile, IsTheClosedFormOfAQuadratic) {
  const at::Tensor h = at::tensor({4.0, 1.0, 0.25}, at::kDouble);
  for (int64_t k = 0; k < 5; ++k) {
    at::Tensor d = testing::sine_numbers({3}, static_cast<double>(10 * k));
    d = d / d.norm();
    const double curvature = (h * d * d).sum().item<double>();
    Ray ray([&](double r) { return 2 + r * r * curvature / 2; });
    for (const double delta : {1e-8, 1e-3, 0.1, 10.0}) {
      for (const double tolerance : {0.1, 1e-3, 1e-9}) {
        const Radius radius =
            radius_of_rise(ray, 2 + delta, {.first = 0.01, .most = 100, .tolerance = tolerance});
        const double expected = std::sqrt(2 * delta / curvature);
        ASSERT_TRUE(radius.reached);
        // Within the bracket; 2 + 1e-8 has the rounding of 2, 2e-8 of the rise.
        EXPECT_NEAR(radius.value, expected, radius.error + 3e-8 * expected);
        EXPECT_LE(radius.error, tolerance * expected);
      }
    }
  }
}

TEST(RadialProfile, SharesWhatIsKnownOfARay) {
  int64_t calls = 0;
  Ray ray([&](double r) {
    ++calls;
    return r * r;
  });
  const RadiusSearch search{.first = 0.01, .most = 100, .tolerance = 0.01};
  const double first = radius_of_rise(ray, 1, search).value;
  // 0.01 to 1.28 by factors of 2 is 8 values; then log2(log 2 / log 1.01) = 6.1 halvings.
  EXPECT_EQ(calls, 15);
  EXPECT_EQ(radius_of_rise(ray, 1, search).value, first);
  EXPECT_EQ(calls, 15);
  Ray fresh([&](double r) { return r * r; });
  radius_of_rise(ray, 2, search);
  EXPECT_EQ(radius_of_rise(ray, 2, search).value, radius_of_rise(fresh, 2, search).value);
  EXPECT_LT(calls, 30);
}

TEST(RadialProfile, SaysWhatWasNotReached) {
  Ray flat([](double) { return 1.0; });
  const Radius far = radius_of_rise(flat, 2, {.first = 0.01, .most = 1, .tolerance = 0.01});
  EXPECT_FALSE(far.reached);
  EXPECT_TRUE(std::isnan(far.value));
  Ray cliff([](double r) { return r < 0.7 ? 1.0 : NAN; });  // an overflow is a rise
  const Radius edge = radius_of_rise(cliff, 2, {.first = 0.01, .most = 1, .tolerance = 0.01});
  EXPECT_NEAR(edge.value, 0.7, edge.error);
  Ray beyond([](double r) { return r < 1.1 ? 1.0 : 3.0; });  // past `most`, before the next power of 2
  EXPECT_FALSE(radius_of_rise(beyond, 2, {.first = 0.01, .most = 1, .tolerance = 0.01}).reached);
  Ray last_step([](double r) { return r < 0.99 ? 1.0 : 3.0; });  // 0.64, then `most`
  EXPECT_TRUE(radius_of_rise(last_step, 2, {.first = 0.01, .most = 1, .tolerance = 0.01}).reached);
}

// The region below delta in two dimensions is an ellipse with half axes a, b: V / V_2 = a b. On the unit
// circle the mean of log(cos^2/a^2 + sin^2/b^2) is 2 log((1/a + 1/b)/2).
TEST(RadialProfile, MeansAreThoseOfAnEllipse) {
  const double a = 3, b = 0.5;
  at::Generator generator = make_generator(4);
  std::vector<double> radii;
  for (int i = 0; i < 20000; ++i) {
    at::Tensor d = at::randn({2}, generator, at::kDouble);
    d = d / d.norm();
    const double x = d[0].item<double>() / a, y = d[1].item<double>() / b;
    radii.push_back(1 / std::sqrt(x * x + y * y));
  }
  const LogVolume volume = log_volume(radii, 0, 100, 2);
  EXPECT_EQ(volume.status, VolumeStatus::ok);
  // Five standard errors; that of the power's mean by hand: r^2 has mean ab = 1.5 and mean square
  // ab (a^2 + b^2)/2 = 6.94, so 0.0153 on the mean, 0.0051 on half its log.
  EXPECT_NEAR(volume.mean_log_radius, -std::log((1 / a + 1 / b) / 2), 5 * volume.standard_error);
  EXPECT_LT(volume.standard_error, 0.01);
  EXPECT_NEAR(volume.log_mean_power, std::log(a * b) / 2, 5 * 0.0051);
  EXPECT_LT(volume.mean_log_radius, volume.log_mean_power);
  EXPECT_NEAR(volume.effective_directions / 20000, 1.5 * 1.5 / 6.94, 0.03);
}

TEST(RadialProfile, IntervalsOfTheMeanCover) {
  at::Generator generator = make_generator(9);
  int covered = 0;
  for (int repetition = 0; repetition < 400; ++repetition) {
    const at::Tensor logs = at::randn({20}, generator, at::kDouble) * 0.3 - 1;
    std::vector<double> radii;
    for (int i = 0; i < 20; ++i) radii.push_back(std::exp(logs[i].item<double>()));
    const LogVolume volume = log_volume(radii, 0, 100, 1000);
    covered +=
        std::abs(volume.mean_log_radius + 1) < 2.093 * volume.standard_error;  // t, 19 degrees of freedom
  }
  EXPECT_NEAR(covered / 400.0, 0.95, 4 * std::sqrt(0.95 * 0.05 / 400));
}

TEST(RadialProfile, CountsTheCensored) {
  const LogVolume some = log_volume({1, NAN, 1}, 0, 10, 1000);
  EXPECT_EQ(some.status, VolumeStatus::censored);
  EXPECT_EQ(some.reached, 2);
  EXPECT_EQ(some.directions, 3);
  EXPECT_NEAR(some.mean_log_radius, std::log(10) / 3, 1e-15);
  EXPECT_TRUE(std::isnan(some.standard_error));
  EXPECT_NEAR(some.log_mean_power, std::log(10) - std::log(3) / 1000, 1e-14);  // the largest of them
  EXPECT_NEAR(some.effective_directions, 1, 1e-14);
  const LogVolume lost = log_volume({1, 1}, 1, 10, 1000);  // not known whether the third reached it
  EXPECT_EQ(lost.status, VolumeStatus::failed);
  EXPECT_TRUE(std::isnan(lost.mean_log_radius) && std::isnan(lost.log_mean_power));
  EXPECT_EQ(lost.directions, 3);
  const LogVolume none = log_volume({NAN, NAN}, 0, 10, 1000);
  EXPECT_EQ(none.status, VolumeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(none.mean_log_radius) && std::isnan(none.log_mean_power));
}

}  // namespace
}  // namespace basin
