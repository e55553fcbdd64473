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

TEST(Median, ByHand) {
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_EQ(median({3, 1, 7}), 3);
  EXPECT_EQ(median({8, 1, 2, 5}), 3.5);
}

// scipy.stats.t.isf(tail, freedom) of scipy 1.17.1, another implementation.
TEST(StudentQuantile, AgreesWithScipy) {
  EXPECT_NEAR(student_quantile(1), 12.706204736174705, 1e-8);
  EXPECT_NEAR(student_quantile(2), 4.302652729749464, 1e-9);
  EXPECT_NEAR(student_quantile(3), 3.1824463052837086, 1e-9);
  EXPECT_NEAR(student_quantile(4.7), 2.6207260753531707, 1e-9);
  EXPECT_NEAR(student_quantile(99), 1.9842169515864176, 1e-9);
  EXPECT_NEAR(student_quantile(2, 0.2), 1.060660171779821, 1e-9);
  EXPECT_NEAR(student_quantile(3, 0.001), 10.214531852407385, 1e-8);
}

TEST(StudentQuantile, TendsToTheNormalOne) {
  EXPECT_NEAR(student_quantile(1e6), 1.959963984540054, 3e-6);
  EXPECT_NEAR(student_quantile(INFINITY), 1.959963984540054, 3e-7);
  EXPECT_TRUE(std::isnan(student_quantile(NAN)));
  EXPECT_TRUE(std::isnan(student_quantile(0)));
}

}  // namespace
}  // namespace basin
