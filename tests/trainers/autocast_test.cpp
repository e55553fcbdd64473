// bfloat16 in the forward passes of training batches, and nowhere else.
#include "models/layers/autocast.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings settings(const std::string& autocast) {
  RunSettings s = small_settings();
  s.model = "small_cnn";
  s.model_settings = {"widths=[4, 8, 8]"};
  s.optimizer_settings = {"momentum=0"};
  s.train.dtype = "float32";
  s.train.autocast = autocast;
  s.train.micro_batch = 32;
  return s;
}

// With rate 1 and no momentum the change of the weights is minus the gradient.
at::Tensor first_gradient(RunSettings s) {
  s.train.updates = 1;
  s.train.learning_rate = 1;
  TestRun run(s);
  const at::Tensor before = run.weights();
  run.run();
  return before - run.weights();
}

TEST(AutocastTraining, GradientIsThatOfFloat32ToTheRoundingOfBfloat16) {
  const at::Tensor exact = first_gradient(settings("none")), found = first_gradient(settings("bfloat16"));
  // Four layers there and back, roundings of 2^-9 = 0.002 each that add up at random; and where two pixels of
  // a pool round to the same number, another one may win.
  EXPECT_LT(relative_difference(found, exact), 0.06);
  EXPECT_GT(relative_difference(found, exact), 1e-4) << "nothing was rounded";
}

TEST(AutocastTraining, LossDecreases) {
  RunSettings s = settings("bfloat16");
  s.model = "mlp";
  s.model_settings = {"hidden=[16]"};
  s.optimizer_settings = {};
  s.train.updates = 60;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::finished);
  EXPECT_LT(number(result, "train_loss"), 0.7 * run.listener.updates.front().loss);
}

double mean_loss(TestRun& run) {
  const at::Tensor index = at::arange(run.data.test.size(), at::kLong);
  const at::Tensor inputs = network_inputs(run.data, run.data.test, index, at::kFloat, at::kCPU);
  const at::Tensor logits = run.model->forward(inputs).to(at::kDouble);
  return -at::log_softmax(logits, 1).gather(1, run.data.test.labels.unsqueeze(1)).mean().item<double>();
}

TEST(AutocastTraining, EvaluationsAreInFloat32) {
  TestRun run(settings("bfloat16"));
  const TrainResult result = run.run();
  const double plain = mean_loss(run);
  double rounded = 0;
  {
    const Autocast on(true, at::kCPU);
    rounded = mean_loss(run);
  }
  ASSERT_GT(std::abs(rounded - plain), 1e-5) << "bfloat16 makes no difference here";
  EXPECT_NEAR(number(result, "test_loss"), plain, 1e-6);  // float32 in other micro-batches
}

TEST(AutocastTraining, RefusesFloat64) {
  RunSettings s = settings("bfloat16");
  s.train.dtype = "float64";
  try {
    TestRun run(s);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "autocast = \"bfloat16\" needs dtype = \"float32\", not \"float64\"");
  }
}

}  // namespace
}  // namespace basin::testing
