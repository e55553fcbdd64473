// What stands between the loss and the optimiser: smoothed labels and clipping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "io/run_file.h"
#include "tests/trainers/test_run.h"
#include "trainers/tables.h"

namespace basin::testing {
namespace {

double smoothed_loss(TestRun& run, double smoothing) {
  const at::NoGradGuard no_grad;
  const Batch batch = ExampleStream(1, 200).slice(0, 50, false);
  const at::Tensor index = at::tensor(batch.examples, at::kLong);
  const at::Tensor logits =
      run.model->forward(network_inputs(run.data, run.data.train, index, at::kDouble, at::kCPU));
  const at::Tensor log_p = logits - logits.exp().sum(1, true).log();
  const at::Tensor own =
      log_p.gather(1, run.data.train.labels.index_select(0, index).unsqueeze(1)).squeeze(1);
  return -((1 - smoothing) * own + smoothing * log_p.mean(1)).mean().item<double>();
}

TEST(LabelSmoothing, IsInTheBatchLossAndInNoOther) {
  RunSettings s = small_settings();
  s.train.label_smoothing = 0.3;
  s.train.evaluate_every = 50;
  TestRun run(s), start(s);
  const TrainResult result = run.run();
  EXPECT_NEAR(run.listener.updates.at(0).loss, smoothed_loss(start, 0.3), 1e-13);
  EXPECT_GT(std::abs(smoothed_loss(start, 0.3) - smoothed_loss(start, 0)), 1e-3);

  const at::NoGradGuard no_grad;
  const at::Tensor all = at::arange(200, at::kLong);
  const at::Tensor logits =
      run.model->forward(network_inputs(run.data, run.data.train, all, at::kDouble, at::kCPU));
  const at::Tensor own = logits.gather(1, run.data.train.labels.unsqueeze(1)).squeeze(1);
  EXPECT_NEAR(number(result, "train_loss"), (logits.exp().sum(1).log() - own).mean().item<double>(), 1e-12);
}

TEST(LabelSmoothing, TrainsOnTheSmoothedLoss) {
  RunSettings s = small_settings();
  s.train.label_smoothing = 0.3;
  s.train.updates = 1;
  s.train.learning_rate = 0.005;
  s.optimizer_settings = {"momentum=0"};
  TestRun run(s), start(s);
  run.run();
  // A step of gradient descent lowers the loss by lr |g|^2 to first order; lr g'Hg / 2|g|^2 of it, some 3 %,
  // is the second.
  const UpdateRecord& update = run.listener.updates.at(0);
  const double fall = smoothed_loss(start, 0.3) - smoothed_loss(run, 0.3);
  EXPECT_NEAR(fall / (0.005 * update.gradient_norm * update.gradient_norm), 1, 0.06);
}

TEST(LabelSmoothing, IsRefusedForSquaredErrors) {
  RunSettings s = small_settings();
  s.train.label_smoothing = 0.1;
  s.train.loss = "mse";
  try {
    TestRun run(s);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "label_smoothing = 0.1 needs loss = \"cross_entropy\", not \"mse\"");
  }
}

RunSettings clipped(double limit) {
  RunSettings s = small_settings();
  s.train.clip_gradient = limit;
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
  EXPECT_DOUBLE_EQ(first.clip_factor, 0.2 / unclipped.gradient_norm);
  EXPECT_NEAR(first.update_norm, 0.05 * 0.2, 1e-15);
  for (size_t p = 0; p < run.listener.steps.at(0).size(); ++p) {
    EXPECT_DOUBLE_EQ(run.listener.steps.at(0)[p].gradient_norm, plain.listener.steps.at(0)[p].gradient_norm);
    EXPECT_NEAR(run.listener.steps.at(0)[p].update_norm,
                first.clip_factor * plain.listener.steps.at(0)[p].update_norm, 1e-15);
  }
}

TEST(Clipping, LeavesASmallGradientAlone) {
  TestRun plain(clipped(0)), run(clipped(100));
  plain.run();
  run.run();
  EXPECT_TRUE(run.weights().equal(plain.weights()));
  for (const UpdateRecord& update : run.listener.updates) EXPECT_EQ(update.clip_factor, 1);
}

std::vector<std::string> columns_of(const TrainOptions& options) {
  std::vector<std::string> names;
  for (const Column& column : train_table(options).columns) names.push_back(column.name);
  return names;
}

TEST(TrainTable, HasColumnsForWhatIsSwitchedOn) {
  TrainOptions options;
  const size_t plain = columns_of(options).size();
  EXPECT_THAT(columns_of(options), ::testing::Not(::testing::Contains("clip_factor")));
  options.clip_gradient = 0.5;
  options.batch_milestones = {0.5};
  ASSERT_EQ(columns_of(options).size(), plain + 2);
  UpdateRecord record;
  record.clip_factor = 0.25;
  record.batch_size = 96;
  std::vector<double> row;
  fill_train_row(record, options, row);
  ASSERT_EQ(row.size(), plain + 2);
  EXPECT_EQ(columns_of(options)[plain], "clip_factor");
  EXPECT_EQ(row[plain], 0.25);
  EXPECT_EQ(columns_of(options)[plain + 1], "batch_size");
  EXPECT_EQ(row[plain + 1], 96);
}

}  // namespace
}  // namespace basin::testing
