// Clipping against the run without it.
#include "trainers/hooks/gradient_clipping.h"

#include <gtest/gtest.h>

#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings clipped(double limit) {
  RunSettings s = small_settings();
  s.train.hook<GradientClippingOptions>().limit = limit;
  s.optimizer_settings = {"momentum=0"};
  return s;
}

TEST(Clipping, BoundsTheStepAndRecordsTheGradientAsItWas) {
  TestRun plain(clipped(0)), run(clipped(0.2));
  plain.run();
  run.run();
  const UpdateRecord &first = run.listener.updates.at(0), &unclipped = plain.listener.updates.at(0);
  ASSERT_GT(unclipped.gradient_norm, 0.4) << "nothing to clip";
  // Clipping and the update add the same squares up in two orders: 4 units in the last place.
  EXPECT_DOUBLE_EQ(first.gradient_norm, unclipped.gradient_norm);
  EXPECT_DOUBLE_EQ(first.hook_values.at(0), 0.2 / unclipped.gradient_norm);
  EXPECT_NEAR(first.update_norm, 0.05 * 0.2, 1e-15);
  for (size_t p = 0; p < run.listener.steps.at(0).size(); ++p) {
    EXPECT_DOUBLE_EQ(run.listener.steps.at(0)[p].gradient_norm, plain.listener.steps.at(0)[p].gradient_norm);
    EXPECT_NEAR(run.listener.steps.at(0)[p].update_norm,
                first.hook_values.at(0) * plain.listener.steps.at(0)[p].update_norm, 1e-15);
  }
}

TEST(Clipping, LeavesASmallGradientAlone) {
  TestRun plain(clipped(0)), run(clipped(100));
  plain.run();
  run.run();
  EXPECT_TRUE(run.weights().equal(plain.weights()));
  for (const UpdateRecord& update : run.listener.updates)
    EXPECT_EQ(update.hook_values, std::vector<double>{1});
}

}  // namespace
}  // namespace basin::testing
