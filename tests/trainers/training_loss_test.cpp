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
    EXPECT_STREQ(error.what(), "label_smoothing = 0.1 needs a cross entropy as loss, not \"mse\"");
  }
}

std::vector<std::string> columns_of(const TrainOptions& options, const std::vector<Column>& of_hooks) {
  std::vector<std::string> names;
  for (const Column& column : train_table(options, of_hooks).columns) names.push_back(column.name);
  return names;
}

TEST(TrainTable, HasColumnsForWhatIsSwitchedOn) {
  TrainOptions options;
  const std::vector<std::string> plain = columns_of(options, {});
  options.batch_milestones = {0.5};
  const std::vector<Column> of_hooks{column("clip_factor", "1", "clipping factor", "")};
  std::vector<std::string> expected = plain;
  expected.insert(expected.end(), {"clip_factor", "batch_size"});
  EXPECT_EQ(columns_of(options, of_hooks), expected);
  UpdateRecord record;
  record.hook_values = {0.25};
  record.batch_size = 96;
  std::vector<double> row;
  fill_train_row(record, options, row);
  ASSERT_EQ(row.size(), expected.size());
  EXPECT_EQ(row[plain.size()], 0.25);
  EXPECT_EQ(row[plain.size() + 1], 96);
}

}  // namespace
}  // namespace basin::testing
