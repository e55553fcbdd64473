#include "core/math/critical_step.h"

#include <gtest/gtest.h>

#include <cmath>

namespace basin {
namespace {

// L(s) = L0 - a s + b s^2 / 2 is back at L0 at 2 a / b.
TEST(CriticalStep, OfAParabolaIsTwiceSlopeOverCurvature) {
  for (const double critical : {1e-4, 0.3, 1.0, 1.7, 5.0, 3e5}) {
    const auto parabola = [&](double s) { return 2 - s + s * s / critical; };
    const CriticalStep found = critical_step(parabola, 2, 1e-9);
    EXPECT_EQ(found.why, CriticalStep::Why::found);
    EXPECT_NEAR(found.value, critical, 2e-9 * critical);  // the tolerance, and rounding of 2 - s + ...
    EXPECT_LE(found.high - found.low, 1e-9 * found.low);
    EXPECT_LE(parabola(found.low), 2);
    EXPECT_GT(parabola(found.high), 2);
  }
}

TEST(CriticalStep, CostsFiveOrSixEvaluationsNearTheStepItself) {
  for (const double critical : {0.6, 0.9, 1.1, 1.9, 2.1, 3.9}) {
    const CriticalStep found = critical_step([&](double s) { return -s + s * s / critical; }, 0, 0.125);
    EXPECT_GE(found.evaluations, 5);
    EXPECT_LE(found.evaluations, 6);
    EXPECT_NEAR(found.value, critical, 0.0625 * critical);  // half the bracket
  }
}

TEST(CriticalStep, SaysWhereThereIsNone) {
  const CriticalStep uphill = critical_step([](double s) { return s; }, 0, 0.1);
  EXPECT_EQ(uphill.why, CriticalStep::Why::no_descent);
  const CriticalStep downhill = critical_step([](double s) { return -s; }, 0, 0.1);
  EXPECT_EQ(downhill.why, CriticalStep::Why::never_rises);
  for (const CriticalStep& none : {uphill, downhill}) {
    EXPECT_TRUE(std::isnan(none.value) && std::isnan(none.low) && std::isnan(none.high));
    EXPECT_LE(none.evaluations, kMostDoublings + 1);
  }
}

TEST(CriticalStep, ALossThatIsNotFiniteIsARise) {
  const CriticalStep found = critical_step([](double s) { return s > 3 ? NAN : -s; }, 0, 1e-6);
  EXPECT_NEAR(found.value, 3, 1e-5);
}

}  // namespace
}  // namespace basin
