// A network that died has gradients near the smallest float; the trust ratio is then beyond the largest.
#include <gtest/gtest.h>

#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

/// A power of two, so that float32 holds it without rounding although it is denormal.
const double kTiny = std::ldexp(1.0, -140);

TEST(VanishingGradient, LarsStillStepsByItsShareOfTheWeights) {
  const std::vector<ParameterInfo> parameters{
      make_parameter("fc.weight", ParameterKind::weight, {3e4, 4e4}, at::kFloat)};
  const auto optimizer =
      make_test_optimizer("lars", {"weight_decay=0.0", "trust_coefficient=0.01"}, parameters);
  optimizer->set_learning_rate(1);
  set_gradient(parameters[0], {kTiny, 0});
  optimizer->step();
  // v = eta |w| g / |g| = 0.01 * 5e4 along the first axis; the ratio alone is 7e44. Float32 rounds 3e4 to 2e-3.
  EXPECT_NEAR(values_of(parameters[0].tensor)[0], 3e4 - 500, 4e-3);
  EXPECT_EQ(values_of(parameters[0].tensor)[1], 4e4);
  EXPECT_NEAR(optimizer->last_step()[0].update_norm, 500, 1e-2);
}

TEST(VanishingGradient, LambStillStepsByTheNormOfTheWeights) {
  const std::vector<ParameterInfo> parameters{
      make_parameter("fc.weight", ParameterKind::weight, {3e4, 4e4}, at::kFloat)};
  const auto optimizer =
      make_test_optimizer("lamb", {"weight_decay=0.0", "beta1=0.0", "eps=1.0"}, parameters);
  optimizer->set_learning_rate(0.01);
  set_gradient(parameters[0], {kTiny, 0});
  optimizer->step();
  // u = g / (sqrt(g^2) + 1) with g^2 below every float: u = g, and w goes by 0.01 |w| along it.
  EXPECT_NEAR(values_of(parameters[0].tensor)[0], 3e4 - 500, 4e-3);
  EXPECT_NEAR(optimizer->last_step()[0].update_norm, 500, 1e-2);
}

}  // namespace
}  // namespace basin
