// Growing batches: phases counted by hand, the stream's order, what is refused.
#include "trainers/batch_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

using Phases = std::vector<std::pair<int64_t, int64_t>>;  // batch size, updates

BatchSchedule schedule_of(const TrainOptions& options, int64_t n) {
  return {options, plan_batches(options, DataOptions(), false, false, 0), n};
}

Phases phases_of(const TrainOptions& options, int64_t n) {
  Phases phases;
  const BatchSchedule schedule = schedule_of(options, n);
  for (const auto& [size, updates] : schedule.phases()) phases.emplace_back(size, updates);
  return phases;
}

TrainOptions growing() {
  TrainOptions options;
  options.epochs = 10;
  options.batch_size = 10;
  options.batch_milestones = {0.3, 0.8};
  options.batch_factor = 4;
  return options;
}

TEST(BatchScheduleTest, GrowsAtSharesOfTheEpochs) {
  // 1,000 examples: 300 in tens; 500 in forties is 12.5, so 13 and 20 too many; the other 180 in one and an
  // eighth of 160.
  const BatchSchedule schedule = schedule_of(growing(), 100);
  EXPECT_EQ(phases_of(growing(), 100), (Phases{{10, 30}, {40, 13}, {160, 2}}));
  EXPECT_EQ(schedule.updates(), 45);
  EXPECT_EQ(schedule.examples(), 300 + 520 + 320);
  EXPECT_EQ(schedule.batch_size(0), 10);
  EXPECT_EQ(schedule.batch_size(29), 10);
  EXPECT_EQ(schedule.batch_size(30), 40);
  EXPECT_EQ(schedule.batch_size(42), 40);
  EXPECT_EQ(schedule.batch_size(43), 160);
  EXPECT_EQ(schedule.batch_size(44), 160);
}

TEST(BatchScheduleTest, TakesMilestonesInAnyOrderAndOnesAtTheStartAndTwice) {
  TrainOptions options = growing();
  options.batch_milestones = {0.8, 0.3};
  EXPECT_EQ(phases_of(options, 100), phases_of(growing(), 100));
  options.batch_milestones = {0, 0.5, 0.5};
  options.batch_factor = 2;
  EXPECT_EQ(phases_of(options, 100), (Phases{{10, 0}, {20, 25}, {40, 0}, {80, 7}}));
}

TEST(BatchScheduleTest, MakesExactlyTheUpdatesAskedFor) {
  // Updates u_k with u_0 10 = 0.3 E, u_1 40 = 0.5 E, u_2 160 = 0.2 E: E (0.03 + 0.0125 + 0.00125) = 35 makes
  // E = 800.
  TrainOptions options = growing();
  options.protocol = "A-updates";
  options.updates = 35;
  EXPECT_EQ(phases_of(options, 7), (Phases{{10, 24}, {40, 10}, {160, 1}}));
  for (const int64_t updates : {1, 2, 3, 10, 34, 36, 1000}) {
    options.updates = updates;
    EXPECT_EQ(schedule_of(options, 7).updates(), updates);
  }
}

TEST(BatchScheduleTest, IsOnePhaseWithoutMilestones) {
  TrainOptions options = growing();
  options.batch_milestones.clear();
  EXPECT_EQ(phases_of(options, 100), (Phases{{10, 100}}));
  options.epochs = 0.7;
  EXPECT_EQ(phases_of(options, 1000), (Phases{{10, 70}}));
  options.epochs = 1e-9;
  EXPECT_EQ(phases_of(options, 100), (Phases{{10, 1}}));
}

std::string refusal(const TrainOptions& options) {
  try {
    schedule_of(options, 100);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(BatchScheduleTest, IsRefusedWhereThereIsNoBudgetOrTooMuch) {
  TrainOptions options = growing();
  options.protocol = "B";
  EXPECT_EQ(refusal(options),
            "batch_milestones are shares of a fixed budget, which protocol = \"B\" doesn't have");
  options = growing();
  options.batch_milestones = std::vector<double>(60, 0.5);
  EXPECT_THAT(refusal(options), ::testing::HasSubstr("2^53"));
}

RunSettings growing_run() {
  RunSettings s = small_settings();
  s.train.protocol = "A-epochs";
  s.train.epochs = 2;  // 400 examples
  s.train.batch_milestones = {0.5};
  s.train.batch_factor = 3;
  s.train.checkpoint_every = 4;
  s.schedule.schedule = "cosine";
  return s;
}

TEST(AdaptedRegime, MultipliesEpochsAndWhatTheScheduleCountsInThem) {
  RunSettings s = small_settings();  // 200 examples, learning_rate 0.05
  s.train.protocol = "A-epochs";
  s.train.epochs = 1.5;
  s.train.batch_size = 50;
  s.train.regime_batch = 20;  // ceil(50/20) = 3: 4.5 epochs of 4 updates
  s.schedule.schedule = "step";
  s.schedule.schedule_unit = "epochs";
  s.schedule.warmup = 0.25;
  s.schedule.milestones = {1};
  TestRun run(s);
  const TrainResult result = run.run();
  std::vector<double> rates;
  for (const UpdateRecord& update : run.listener.updates) rates.push_back(update.learning_rate);
  ASSERT_EQ(rates.size(), 18u);
  EXPECT_NEAR(rates[0], 0.05 / 3, 1e-17);
  for (size_t t = 2; t < 12; ++t) EXPECT_EQ(rates[t], 0.05) << t;
  for (size_t t = 12; t < 18; ++t) EXPECT_NEAR(rates[t], 0.005, 1e-17) << t;
  EXPECT_EQ(number(result, "epochs"), 4.5);
  EXPECT_EQ(number(result, "epochs_over_budget"), 0);
  s.train.protocol = "A-updates";
  EXPECT_THROW(TestRun{s}, ConfigError);
}

TEST(EffectiveRate, IsDividedByWhatMomentumAdds) {
  RunSettings s = small_settings();
  s.train.protocol = "A-updates";
  s.train.updates = 3;
  s.schedule.effective_rate = true;
  s.optimizer_settings = {"momentum=0.75"};
  TestRun run(s);
  run.run();
  for (const UpdateRecord& update : run.listener.updates) EXPECT_EQ(update.learning_rate, 0.0125);
}

TEST(GrowingBatches, GoOnAlongTheSameStream) {
  TestRun run(growing_run()), at_four(growing_run());
  const TrainResult result = run.run();
  std::vector<int64_t> sizes, examples;
  for (const UpdateRecord& update : run.listener.updates) {
    sizes.push_back(update.batch_size);
    examples.push_back(update.examples);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{50, 50, 50, 50, 150, 150}));
  EXPECT_EQ(examples, (std::vector<int64_t>{50, 100, 150, 200, 350, 500}));
  EXPECT_EQ(number(result, "planned_updates"), 6);
  EXPECT_EQ(number(result, "epochs"), 2.5);
  // The schedule of the rate is laid over the six updates.
  EXPECT_NEAR(run.listener.updates[3].learning_rate, 0.05 * (1 + std::cos(M_PI * 3 / 6)) / 2, 1e-15);

  // The fifth batch is positions 200 to 349: its loss by hand at the weights of the checkpoint before it.
  restore_model(*at_four.model, run.listener.checkpoints.at("u000004"));
  const Batch batch = ExampleStream(1, 200).slice(200, 150, false);
  const at::Tensor index = at::tensor(batch.examples, at::kLong);
  const at::Tensor logits =
      at_four.model->forward(network_inputs(at_four.data, at_four.data.train, index, at::kDouble, at::kCPU));
  const at::Tensor labels = at_four.data.train.labels.index_select(0, index);
  const double loss = -at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).mean().item<double>();
  EXPECT_NEAR(run.listener.updates[4].loss, loss, 1e-13);
}

TEST(GrowingBatches, ScaleTheRateByTheFirstBatchSize) {
  RunSettings s = growing_run();
  s.schedule.schedule = "constant";
  s.schedule.scaling_rule = "linear";
  s.schedule.base_batch = 25;
  TestRun run(s);
  run.run();
  for (const UpdateRecord& update : run.listener.updates) EXPECT_EQ(update.learning_rate, 0.1);
}

TEST(GrowingBatches, TakeTheRateAlongByAPower) {
  RunSettings s = growing_run();
  s.schedule.schedule = "constant";
  s.train.batch_rate_power = 0.5;
  TestRun run(s);
  run.run();
  std::vector<double> rates;
  for (const UpdateRecord& update : run.listener.updates) rates.push_back(update.learning_rate);
  const double grown = 0.05 * 1.7320508075688772;  // three times the batch
  EXPECT_THAT(rates, ::testing::Pointwise(::testing::DoubleEq(),
                                          std::vector<double>{0.05, 0.05, 0.05, 0.05, grown, grown}));
  // What probes and branches take for the last update's.
  const auto& kept = run.listener.checkpoints.at("end").progress;
  EXPECT_DOUBLE_EQ(std::get<double>(kept.at("learning_rate")), grown);
  // The weights too, not only the record.
  s.train.batch_rate_power = 0;
  TestRun plain(s);
  plain.run();
  EXPECT_FALSE(run.weights().equal(plain.weights()));
}

TEST(GrowingBatches, KeepTheGhostBatchOfTheFirst) {
  RunSettings s = growing_run();
  s.model_settings = {"hidden=[8]", "norm=batch"};
  s.train.micro_batch = 150;
  TestRun growing(s);
  growing.run();
  s.train.ghost_batch = 50;
  TestRun fixed(s);
  fixed.run();
  EXPECT_TRUE(growing.weights().equal(fixed.weights()));
  s.train.micro_batch = 60;  // would cut the later batches' ghosts
  s.train.ghost_batch = 0;
  EXPECT_THROW(TestRun{s}, ConfigError);
}

}  // namespace
}  // namespace basin::testing
