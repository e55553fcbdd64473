#include "landscape/connectivity.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace basin {
namespace {

TEST(Connectivity, ExcessIsOverTheChordOfTheEnds) {
  // Chord 1, 1.5, 2, 3 at these t; values above it by 0, 0.25, 0.5, 0.
  const std::vector<double> t{0, 0.25, 0.5, 1};
  Excess highest = highest_excess(t, {1, 1.75, 2.5, 3});
  EXPECT_EQ(highest.point, 2);
  EXPECT_EQ(highest.value, 0.5);
  highest = highest_excess(t, {1, 0.5, 1.75, 3});  // below it all the way
  EXPECT_EQ(highest.point, 2);
  EXPECT_EQ(highest.value, -0.25);
  EXPECT_EQ(highest_excess(t, {1, 2.5, 3, 3}).point, 1);  // 1 and 1: the first
}

TEST(Connectivity, ExcessIsUnknownWhereAValueIs) {
  for (const double bad : {NAN, INFINITY}) {
    for (size_t i = 0; i < 4; ++i) {
      std::vector<double> values{1, 2, 2, 1};
      values[i] = bad;
      const Excess highest = highest_excess({0, 0.25, 0.5, 1}, values);
      EXPECT_EQ(highest.point, -1);
      EXPECT_TRUE(std::isnan(highest.value));
    }
  }
  EXPECT_EQ(highest_excess({0, 1}, {1, 2}).point, -1);
}

TEST(Connectivity, ExcessOfExamplesIsPaired) {
  const at::Tensor hard = at::tensor({0.0, 100.0, 7.0, 2.0}, at::kDouble);
  // The examples differ by far, their excess not at all.
  SampleMean excess = excess_over_examples(0.25, hard + 3, hard, hard + 4);
  EXPECT_EQ(excess.value, 2);
  EXPECT_EQ(excess.standard_error, 0);
  // Excesses 1, 2, 3, 6: mean 3, standard deviation sqrt(14/3), over sqrt 4.
  excess = excess_over_examples(0.5, hard + at::tensor({1.0, 2.0, 3.0, 6.0}, at::kDouble), hard, hard);
  EXPECT_EQ(excess.value, 3);
  EXPECT_NEAR(excess.standard_error, std::sqrt(14.0 / 3) / 2, 1e-15);  // one rounding per step
  EXPECT_EQ(excess.samples, 4);
}

TEST(Connectivity, MeanAlongAPathDoesNotHangOnItsPoints) {
  // v = s^2 at lengths s = 0, 1, 3: trapezia 1/2 + 10, over 3.
  EXPECT_NEAR(mean_along({0, 1, 9}, {1, 2}), 10.5 / 3, 1e-15);
  // v = 2 + s is straight: the mean is that of the ends however the points lie.
  EXPECT_NEAR(mean_along({2, 2.1, 2.7, 6}, {0.1, 0.6, 3.3}), 4, 1e-15);
  EXPECT_TRUE(std::isnan(mean_along({1, 1}, {0})));
  EXPECT_TRUE(std::isnan(mean_along({1, NAN, 1}, {1, 1})));
}

}  // namespace
}  // namespace basin
