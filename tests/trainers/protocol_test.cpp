// What ends a run, and how it says so.
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"
#include "trainers/check_rule.h"

namespace basin::testing {
namespace {

RunSettings matched_settings() {
  RunSettings s = small_settings();
  s.train.protocol = "B";
  s.train.target_loss = 1.0;
  s.train.check_every = 100;
  s.train.max_gradients = 20000;
  return s;
}

// Mean cross entropy over the training set, written out.
double full_loss(const TestRun& run) {
  const at::NoGradGuard no_grad;
  const at::Tensor all = at::arange(run.data.train.size(), at::kLong);
  const at::Tensor logits =
      run.model->forward(network_inputs(run.data, run.data.train, all, at::kDouble, at::kCPU));
  const at::Tensor own = logits.gather(1, run.data.train.labels.unsqueeze(1)).squeeze(1);
  return (logits.exp().sum(1).log() - own).mean().item<double>();
}

TEST(ProtocolB, StopsAtTheFirstCheckAtOrBelowTheTarget) {
  TestRun run(matched_settings());
  const TrainResult result = run.run();
  ASSERT_EQ(result.status, RunState::finished);
  EXPECT_LE(number(result, "train_loss"), 1.0);
  EXPECT_NEAR(number(result, "train_loss"), full_loss(run), 1e-12);
  EXPECT_EQ(number(result, "steps_to_target"), number(result, "updates"));
  EXPECT_EQ(number(result, "overshot"), 0);
  ASSERT_GE(run.listener.evaluations.size(), 2u);
  for (size_t i = 0; i + 1 < run.listener.evaluations.size(); ++i) {
    EXPECT_GT(run.listener.evaluations[i].train_loss, 1.0) << "an earlier check was at the target";
    EXPECT_TRUE(std::isnan(run.listener.evaluations[i].test_loss))
        << "a check looks at the training loss alone";
  }
  EXPECT_EQ(run.listener.evaluations.back().train_loss, number(result, "train_loss"));
}

TEST(ProtocolB, SaysSoWhereACheckComesFarBelowTheTarget) {
  RunSettings s = matched_settings();
  s.train.target_loss = 2.0;
  s.train.check_every = 4000;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::finished);
  EXPECT_LT(number(result, "train_loss"), 0.8 * 2.0);
  EXPECT_EQ(number(result, "overshot"), 1);
}

TEST(ProtocolB, EndsAtTheCapWithAResult) {
  RunSettings s = matched_settings();
  s.train.target_loss = 1e-9;
  s.train.max_gradients = 1990;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::target_not_reached);
  EXPECT_EQ(number(result, "gradients"), 2000) << "40 updates of 50: the first to reach 1,990";
  EXPECT_TRUE(std::isnan(number(result, "steps_to_target")));
  EXPECT_TRUE(std::isfinite(number(result, "test_loss")));
  EXPECT_FALSE(result.message.empty());
}

// A batch of 300 out of 200 examples costs 200 gradients merged and 300 repeated: a cadence in gradients
// would look at other updates.
TEST(ProtocolB, StopsAtTheSameUpdateHoweverDuplicatesAreComputed) {
  RunSettings s = matched_settings();
  s.train.batch_size = 300;
  s.train.check_every = 700;
  s.train.learning_rate = 0.004;
  s.train.max_gradients = 200000;
  s.train.duplicates = "weighted";
  TestRun weighted(s);
  const TrainResult merged = weighted.run();
  s.train.duplicates = "repeated";
  TestRun repeated(s);
  const TrainResult plain = repeated.run();
  ASSERT_EQ(merged.status, RunState::finished);
  ASSERT_GT(weighted.listener.evaluations.size(), 4u);
  EXPECT_LT(number(merged, "gradients"), number(plain, "gradients"));
  ASSERT_EQ(weighted.listener.evaluations.size(), repeated.listener.evaluations.size());
  for (size_t i = 0; i < weighted.listener.evaluations.size(); ++i) {
    EXPECT_EQ(weighted.listener.evaluations[i].update, repeated.listener.evaluations[i].update) << i;
  }
}

// A run whose loss was near the target once and rose again: the checkpoint says so, the loss is far above.
TEST(ProtocolB, StaysDenseOnceItWasNearTheTarget) {
  RunSettings s = matched_settings();
  s.train.batch_size = 5;
  s.train.learning_rate = 1e-5;
  s.train.check_every = 40;
  s.train.max_gradients = 200;
  TestRun first(s), second(s);
  ASSERT_EQ(first.run_until(10).status, RunState::interrupted);
  Checkpoint checkpoint = first.listener.checkpoints.at("latest");
  checkpoint.progress.at("near_target") = true;
  second.trainer->restore(checkpoint);
  second.run();
  std::vector<int64_t> looks;
  for (const EvaluationRecord& record : second.listener.evaluations) looks.push_back(record.examples);
  ASSERT_GE(looks.size(), 3u);
  EXPECT_GT(second.listener.evaluations.front().train_loss, CheckRule::kNear * 1.0);
  looks.resize(3);
  EXPECT_EQ(looks, (std::vector<int64_t>{80, 90, 100}));
}

TEST(LossLevels, AreRefusedWhereTwoWouldShareACheckpoint) {
  TrainOptions options;
  options.loss_levels = {1.0000001, 2.0, 1.0};
  try {
    const CheckRule rule(options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "loss_levels: 1.0000001 and 1.0 would share the checkpoint loss-1");
  }
}

TEST(Budget, IsRefusedBeyondWhatCanBeCounted) {
  RunSettings s = small_settings();
  s.train.protocol = "A-epochs";
  s.train.epochs = 1e300;
  EXPECT_THROW(TestRun{s}, ConfigError);
  s.train.protocol = "A-updates";
  s.train.updates = int64_t{1} << 50;
  EXPECT_THROW(TestRun{s}, ConfigError) << "times 50 examples";
  s.train.protocol = "B";
  s.train.max_gradients = int64_t{1} << 62;
  EXPECT_THROW(TestRun{s}, ConfigError);
}

TEST(ProtocolA, MakesAtLeastOneUpdateAndRecordsTheRest) {
  RunSettings s = small_settings();
  s.train.protocol = "A-epochs";
  s.train.epochs = 1;
  s.train.batch_size = 500;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(number(result, "updates"), 1);
  EXPECT_EQ(number(result, "epochs"), 2.5);
  EXPECT_EQ(number(result, "epochs_over_budget"), 1.5);
  EXPECT_EQ(number(result, "gradients"), 200);
}

TEST(ProtocolA, CountsUpdatesOfABudgetInEpochs) {
  RunSettings s = small_settings();
  s.train.protocol = "A-epochs";
  s.train.epochs = 2.1;  // 420 examples: 8.4 batches of 50
  TestRun run(s);
  EXPECT_EQ(number(run.run(), "updates"), 9);
}

TEST(ProtocolA, EvaluatesAllSplitsOnItsCadenceAndAtTheEnd) {
  RunSettings s = small_settings();
  s.data.validation = 0.2;
  s.train.updates = 6;
  s.train.evaluate_every = 100;
  TestRun run(s);
  const TrainResult result = run.run();
  ASSERT_EQ(run.listener.evaluations.size(), 3u) << "after 2, 4 and 6 updates of 50";
  for (const EvaluationRecord& record : run.listener.evaluations) {
    EXPECT_TRUE(std::isfinite(record.validation_loss));
    EXPECT_TRUE(std::isfinite(record.test_loss));
  }
  EXPECT_EQ(result.test.loss.size(), 60u);
  double loss = 0, correct = 0;
  for (size_t i = 0; i < 60; ++i) {
    loss += result.test.loss[i] / 60.0;
    correct += result.test.correct[i] / 60.0;
    EXPECT_EQ(result.test.margin[i] > 0, result.test.correct[i] == 1) << i;
  }
  EXPECT_NEAR(loss, number(result, "test_loss"), 1e-6);  // outcomes are float32
  EXPECT_NEAR(correct, number(result, "test_acc"), 1e-12);
}

TEST(Divergence, IsAResult) {
  RunSettings s = small_settings();
  s.train.updates = 50;
  s.train.learning_rate = 1e6;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::diverged);
  EXPECT_NE(result.message.find("at update"), std::string::npos) << result.message;
  EXPECT_LT(number(result, "updates"), 50);
  for (const char* key : {"train_loss", "test_loss", "test_acc"})
    EXPECT_TRUE(std::isnan(number(result, key))) << key;
  EXPECT_TRUE(result.test.loss.empty());
  EXPECT_TRUE(run.listener.checkpoints.count("end"));
}

TEST(Divergence, IsSeenInTheLastEvaluationToo) {
  RunSettings s = small_settings();
  s.train.updates = 1;  // the only batch loss is that of the start
  s.train.learning_rate = 1e306;
  TestRun run(s);
  EXPECT_EQ(run.run().status, RunState::diverged);
}

// Large batches make one update or a few: a rate that throws the loss far up must not end as "finished".
TEST(Divergence, OfTheLastUpdateIsSeenWhereTheLossIsFinite) {
  for (const char* protocol : {"A-updates", "B"}) {
    RunSettings s = small_settings();
    s.train.protocol = protocol;
    s.train.updates = 1;
    s.train.max_gradients = 200;
    s.train.batch_size = 200;
    s.train.check_every = 200;
    s.train.learning_rate = 1e8;
    TestRun run(s);
    const TrainResult result = run.run();
    EXPECT_EQ(result.status, RunState::diverged) << protocol;
    EXPECT_EQ(result.message.find("nan"), std::string::npos) << result.message;
    EXPECT_EQ(number(result, "updates"), 1);
    for (const char* key :
         {"train_loss", "train_acc", "validation_loss", "validation_acc", "test_loss", "test_acc"}) {
      EXPECT_TRUE(std::isnan(number(result, key))) << protocol << ' ' << key;
    }
    EXPECT_TRUE(result.test.loss.empty());
    EXPECT_TRUE(std::isnan(run.listener.evaluations.back().test_loss));
  }
}

// NaN compares false with any limit.
TEST(Divergence, IsSeenInABatchLossThatIsNotANumber) {
  TestRun run(small_settings());
  at::Tensor first = run.model->parameter_table().front().tensor.detach();  // shares the memory
  first.fill_(NAN);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::diverged);
  EXPECT_EQ(result.message, "batch loss nan at update 1");
  EXPECT_EQ(number(result, "updates"), 0);
}

TEST(CheckRuleTest, IsDenserNearTheTarget) {
  TrainOptions options;
  options.protocol = "B";
  options.target_loss = 1.0;
  options.check_every = 1000;
  const CheckRule rule(options);
  EXPECT_EQ(rule.next_check(500, false), 1500);
  EXPECT_EQ(rule.next_check(500, true), 750);
  EXPECT_TRUE(rule.near_target(1.14));
  EXPECT_FALSE(rule.near_target(1.16));
  EXPECT_TRUE(rule.reached(1.0));
  EXPECT_FALSE(rule.reached(1.001));
  EXPECT_FALSE(rule.overshot(0.81));
  EXPECT_TRUE(rule.overshot(0.79));
}

TEST(CheckRuleTest, SortsLevelsAndIsOffWhereNoneIsLeft) {
  TrainOptions options;
  EXPECT_FALSE(CheckRule(options).pending(0));
  options.loss_levels = {1.0, 2.0, 1.0};
  EXPECT_TRUE(CheckRule(options).pending(0));
  EXPECT_TRUE(CheckRule(options).pending(1));
  EXPECT_FALSE(CheckRule(options).pending(2));
  EXPECT_EQ(CheckRule(options).levels(), (std::vector<double>{2.0, 1.0}));
  EXPECT_FALSE(CheckRule(options).reached(0.0)) << "protocol A has no target";
  options.protocol = "B";
  options.target_loss = 0.5;
  EXPECT_TRUE(CheckRule(options).pending(2)) << "the target is left";
}

TEST(NormsTest, RecordWhatAnUpdateDid) {
  RunSettings s = small_settings();
  s.train.updates = 3;
  TestRun run(s), start(s);
  run.run();
  const at::Tensor first = start.weights();
  EXPECT_NEAR(run.listener.updates.at(0).weight_norm, first.norm().item<double>(), 1e-12);
  EXPECT_NEAR(run.listener.updates.at(0).distance_from_start, run.listener.updates.at(0).update_norm, 1e-12);
  EXPECT_NEAR(run.listener.updates.at(2).distance_from_start, (run.weights() - first).norm().item<double>(),
              1e-12);
}

}  // namespace
}  // namespace basin::testing
