// Checkpoints on the way: at loss levels and at a cadence.
#include "trainers/hooks/milestones.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings levelled() {
  RunSettings s = small_settings();
  s.train.protocol = "B";
  s.train.target_loss = 1.0;
  s.train.check_every = 100;
  s.train.max_gradients = 20000;
  return s;
}

TEST(Milestones, KeepsACheckpointAtEachLossLevel) {
  RunSettings s = levelled();
  s.train.loss_levels = {1.5, 2.0};
  TestRun run(s);
  run.run();
  const auto& checkpoints = run.listener.checkpoints;
  for (const auto& [label, level] : {std::pair<const char*, double>{"loss-2", 2.0}, {"loss-1.5", 1.5}}) {
    ASSERT_TRUE(checkpoints.count(label)) << label;
    const auto& progress = checkpoints.at(label).progress;
    EXPECT_EQ(std::get<double>(progress.at("level")), level);
    EXPECT_LE(std::get<double>(progress.at("train_loss")), level);
  }
  EXPECT_FALSE(std::get<bool>(checkpoints.at("loss-2").progress.at("level_overshot")));
  EXPECT_LE(checkpoints.at("loss-2").update, checkpoints.at("loss-1.5").update);
  EXPECT_FALSE(checkpoints.at("end").progress.count("level"));
}

TEST(Milestones, KeepsTheOutcomesOfTestImagesAtEachLossLevel) {
  RunSettings s = levelled();
  s.train.loss_levels = {1.5, 2.0};
  TestRun run(s);
  run.run();
  ASSERT_EQ(run.listener.outcomes.size(), 2u);
  const ExampleOutcomes& found = run.listener.outcomes.at("test@loss-1.5");
  ASSERT_EQ(found.loss.size(), 60u);
  // Against the network rebuilt from the checkpoint of that level.
  const Checkpoint& checkpoint = run.listener.checkpoints.at("loss-1.5");
  TestRun again(s);
  restore_model(*again.model, checkpoint);
  const EvaluationSetup setup{again.data, LossKind::cross_entropy, 60, at::kDouble, at::kCPU};
  ExampleOutcomes expected;
  evaluate(*again.model, setup, again.data.test, &expected);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(found.correct[i], expected.correct[i]);
    EXPECT_EQ(found.predicted[i], expected.predicted[i]);
    EXPECT_NEAR(found.loss[i], expected.loss[i], 1e-6);  // float32
    EXPECT_EQ(found.correct[i] == 1,
              found.predicted[i] == again.data.test.labels[static_cast<int64_t>(i)].item<int64_t>());
  }
  s.train.hook<Milestones::Options>().outcomes = false;
  TestRun without(s);
  without.run();
  EXPECT_TRUE(without.listener.outcomes.empty());
  EXPECT_TRUE(without.weights().equal(run.weights()));
}

TEST(Milestones, MarksACheckpointFarBelowItsLevel) {
  RunSettings s = levelled();
  s.train.check_every = 4000;
  s.train.loss_levels = {2.0, 1.1};
  s.train.target_loss = 0.9;
  TestRun run(s);
  run.run();
  const auto& progress = run.listener.checkpoints.at("loss-2").progress;
  ASSERT_LT(std::get<double>(progress.at("train_loss")), 0.8 * 2.0);
  EXPECT_TRUE(std::get<bool>(progress.at("level_overshot")));
}

// Checks cost a pass each. At a fixed budget nothing follows from one after the last level, and the run is the same.
TEST(Milestones, NoLossIsCheckedOnceTheLowestLevelWasPassed) {
  RunSettings s = small_settings();
  s.train.updates = 100;
  s.train.check_every = 1;  // after each update
  const auto checked = [](const TestRun& run) {
    std::vector<int64_t> updates;
    for (const EvaluationRecord& record : run.listener.evaluations) updates.push_back(record.update);
    return updates;
  };
  s.train.loss_levels = {1.5};
  TestRun passed(s);
  passed.run();
  s.train.loss_levels = {1.5, 1e-9};
  TestRun pending(s);
  pending.run();
  const int64_t at = passed.listener.checkpoints.at("loss-1.5").update;
  ASSERT_GT(at, 1);
  ASSERT_LT(at, 90);
  std::vector<int64_t> expected(static_cast<size_t>(at));
  std::iota(expected.begin(), expected.end(), 1);
  expected.push_back(100);  // the end has its own
  EXPECT_EQ(checked(passed), expected);
  EXPECT_EQ(checked(pending).size(), 100u);
  EXPECT_EQ(pending.listener.checkpoints.at("loss-1.5").update, at);
  EXPECT_TRUE(passed.weights().equal(pending.weights()));
}

TEST(Milestones, ComeEverySoManyUpdatesAndHoldTheWeightsOfThen) {
  RunSettings s = small_settings();
  s.train.updates = 7;
  s.train.checkpoint_every = 3;
  TestRun run(s), short_run(s);
  run.run();
  std::vector<std::string> labels;
  for (const auto& [label, checkpoint] : run.listener.checkpoints) labels.push_back(label);
  EXPECT_EQ(labels, (std::vector<std::string>{"end", "start", "u000003", "u000006"}));
  ASSERT_EQ(short_run.run_until(3).status, RunState::interrupted);
  std::vector<at::Tensor> flat;
  for (const ParameterInfo& p : run.listener.checkpoints.at("u000003").parameters)
    flat.push_back(p.tensor.reshape({-1}));
  EXPECT_TRUE(at::cat(flat).equal(short_run.weights()));
}

}  // namespace
}  // namespace basin::testing
