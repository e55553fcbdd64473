#include "core/math/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace basin {
namespace {

TEST(SampleMean, OneSampleHasNoError) {
  EXPECT_EQ(mean_of({3.0}).value, 3.0);
  EXPECT_TRUE(std::isnan(mean_of({3.0}).standard_error));
  const SampleMean two = mean_of({1.0, 3.0});
  EXPECT_DOUBLE_EQ(two.value, 2);
  EXPECT_DOUBLE_EQ(two.standard_error, 1);  // sqrt(2) / sqrt(2)
}

TEST(SampleMean, CovarianceOfMeansByHand) {
  // Deviations (-1, 0, 1) and (-1, -1, 2): their products sum to 3, over 3 * 2.
  EXPECT_DOUBLE_EQ(covariance_of_means({1, 2, 3}, {0, 0, 3}), 0.5);
}

TEST(StudentQuantile, AgreesWithTables) {
  EXPECT_NEAR(student_quantile(3), 3.1824, 0.005 * 3.1824);
  EXPECT_NEAR(student_quantile(10), 2.2281, 2e-4);
  EXPECT_NEAR(student_quantile(99), 1.9842, 1e-4);
}

}  // namespace
}  // namespace basin
