// Branches: with nothing changed they are their parent's continuation, bit for bit; what [branch] changes, against runs and
// closed forms that have no branch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "optim/registry.h"
#include "tests/support/message_of.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/lookahead.h"
#include "trainers/hooks/weight_average.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

RunSettings hooked_settings(const std::string& optimizer) {
  RunSettings s = with_hooks(noisy_settings(optimizer));
  s.train.checkpoint_every = 1;
  return s;
}

BranchStart start_of(const Checkpoint& checkpoint) {
  BranchStart start;
  start.point.update = std::get<int64_t>(checkpoint.progress.at("update"));
  start.point.examples = std::get<int64_t>(checkpoint.progress.at("examples"));
  start.point.gradients = std::get<int64_t>(checkpoint.progress.at("gradients"));
  start.point.learning_rate = std::get<double>(checkpoint.progress.at("learning_rate"));
  start.same_target = true;
  start.parent = std::make_shared<const Checkpoint>(checkpoint);
  return start;
}

/// The settings with a branch at the checkpoint.
RunSettings branch_at(RunSettings s, const Checkpoint& checkpoint) {
  s.train.branch.from = "0123456789ab";
  s.branch = start_of(checkpoint);
  s.branch->anneal_updates = anneal_length(s.train.branch.anneal, s.branch->point.update, 0);
  return s;
}

void expect_same_bits(double a, double b, const std::string& what) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0) << what << ": " << a << ", " << b;
}

void expect_same_tensors(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].second.equal(b[i].second)) << a[i].first;
}

void expect_same_checkpoint(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(a.parameters[i].tensor.equal(b.parameters[i].tensor)) << a.parameters[i].name;
  expect_same_tensors(a.buffers, b.buffers);
  expect_same_tensors(a.optimizer, b.optimizer);
  ASSERT_EQ(a.states.size(), b.states.size());
  for (const auto& [name, tensors] : a.states) expect_same_tensors(tensors, b.state(name));
  for (const auto& [name, value] : a.progress) {
    if (name.find("seconds") != std::string::npos || name.rfind("branch_", 0) == 0 ||
        name == "steps_to_target")
      continue;
    EXPECT_EQ(value, b.progress.at(name)) << name;
  }
}

void expect_same_rows_after(int64_t update, const Listener& branch, const Listener& parent) {
  const size_t first = static_cast<size_t>(update);
  ASSERT_EQ(branch.updates.size() + first, parent.updates.size());
  for (size_t i = 0; i < branch.updates.size(); ++i) {
    const UpdateRecord &a = branch.updates[i], &b = parent.updates[first + i];
    EXPECT_EQ(a.update, b.update);
    EXPECT_EQ(a.examples, b.examples);
    EXPECT_EQ(a.gradients, b.gradients);
    EXPECT_EQ(a.batch_size, b.batch_size);
    expect_same_bits(a.loss, b.loss, "loss");
    expect_same_bits(a.learning_rate, b.learning_rate, "rate");
    expect_same_bits(a.gradient_norm, b.gradient_norm, "gradient norm");
    expect_same_bits(a.update_norm, b.update_norm, "update norm");
    expect_same_bits(a.distance_from_start, b.distance_from_start, "distance");
    EXPECT_EQ(a.hook_values, b.hook_values);
  }
}

// The branch's first evaluation is that of its start; the others are the parent's later ones.
void expect_same_evaluations_after(int64_t update, const Listener& branch, const Listener& parent) {
  std::vector<EvaluationRecord> later;
  for (const EvaluationRecord& record : parent.evaluations)
    if (record.update > update) later.push_back(record);
  ASSERT_EQ(branch.evaluations.size(), later.size() + 1);
  EXPECT_EQ(branch.evaluations[0].update, update);
  for (size_t i = 0; i < later.size(); ++i) {
    EXPECT_EQ(branch.evaluations[i + 1].update, later[i].update);
    expect_same_bits(branch.evaluations[i + 1].train_loss, later[i].train_loss, "training loss");
    expect_same_bits(branch.evaluations[i + 1].test_loss, later[i].test_loss, "test loss");
  }
}

void expect_same_summary(const TrainResult& branch, const TrainResult& parent) {
  for (const auto& [name, value] : parent.summary) {
    if (name.find("second") != std::string::npos) continue;  // times are the branch's own
    expect_same_bits(number(branch, name), number(parent, name), name);
  }
}

class NothingChanged : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, NothingChanged, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

TEST_P(NothingChanged, ABranchIsItsParentsContinuation) {
  const RunSettings s = hooked_settings(GetParam());
  TestRun parent(s);
  const TrainResult expected = parent.run();
  ASSERT_EQ(expected.status, RunState::finished);
  for (const char* label : {"u000003", "start", "u000006"}) {
    const Checkpoint& at = parent.listener.checkpoints.at(label);
    TestRun branch(branch_at(s, at));
    const TrainResult result = branch.run();
    EXPECT_EQ(result.status, RunState::finished);
    expect_same_checkpoint(branch.listener.checkpoints.at("end"), parent.listener.checkpoints.at("end"));
    expect_same_checkpoint(branch.listener.checkpoints.at("average"),
                           parent.listener.checkpoints.at("average"));
    expect_same_rows_after(at.update, branch.listener, parent.listener);
    expect_same_evaluations_after(at.update, branch.listener, parent.listener);
    expect_same_summary(result, expected);
    EXPECT_EQ(result.test.loss, expected.test.loss);
    EXPECT_EQ(number(result, "branch_update"), static_cast<double>(at.update));
    EXPECT_EQ(number(result, "branch_examples"), static_cast<double>(branch.settings.branch->point.examples));
    expect_same_bits(number(result, "branch_train_loss"), branch.listener.evaluations[0].train_loss,
                     "loss there");
  }
}

// Levels, checks and a target: the branch looks when its parent would have looked, and ends where it ended.
TEST(Branch, OfALossLevelGoesOnAsItsParentDidUnderAMatchedLoss) {
  RunSettings s = small_settings();
  s.train.protocol = "B";
  s.train.target_loss = 0.9;
  s.train.max_gradients = 60000;
  s.train.check_every = 150;
  s.train.evaluate_every = 450;
  s.train.loss_levels = {2.0, 1.6, 1.3, 1.2};
  s.train.learning_rate = 0.1;
  TestRun parent(s);
  const TrainResult expected = parent.run();
  ASSERT_EQ(expected.status, RunState::finished);
  int levels = 0;
  for (const auto& [label, at] : parent.listener.checkpoints) {
    if (label.rfind("loss-", 0) != 0) continue;
    ++levels;
    TestRun branch(branch_at(s, at));
    const TrainResult result = branch.run();
    EXPECT_EQ(result.status, RunState::finished);
    expect_same_summary(result, expected);
    expect_same_evaluations_after(at.update, branch.listener, parent.listener);
    for (const auto& [later, checkpoint] : parent.listener.checkpoints) {
      if (checkpoint.update <= at.update) continue;
      EXPECT_TRUE(branch.listener.checkpoints.count(later)) << label << ' ' << later;
    }
  }
  EXPECT_GE(levels, 3);
}

// A new run of these weights, put there by hand: no branch, so that examples, crops and masks are a new run's.
TEST(Branch, RestartedAndResetIsANewRunFromTheParentsWeights) {
  RunSettings s = hooked_settings("sgd");
  s.schedule.schedule = "constant";
  s.train.batch_milestones.clear();
  s.train.hook<LookaheadOptions>().every = 0;
  s.train.hook<WeightAverageOptions>().decay = 0;
  TestRun parent(s);
  parent.run();
  const Checkpoint& at = parent.listener.checkpoints.at("u000003");
  RunSettings b = branch_at(s, at);
  b.train.branch.optimizer = "reset";
  b.train.branch.stream = "restarted";
  b.train.branch.updates = 4;
  b.branch->point.stream_start = b.branch->point.examples;
  b.branch->point.draws_start = b.branch->point.update;
  TestRun branch(b);
  branch.run();
  EXPECT_EQ(branch.trainer->updates_done(), 7);

  s.train.updates = 4;
  TestRun fresh(s);
  restore_model(*fresh.model, at);
  fresh.run();
  EXPECT_TRUE(branch.weights().equal(fresh.weights()));
  // And neither alone is.
  b.train.branch.optimizer = "kept";
  TestRun kept(b);
  kept.run();
  EXPECT_FALSE(kept.weights().equal(fresh.weights()));
  b.train.branch.optimizer = "reset";
  b.branch->point.stream_start = b.branch->point.draws_start = 0;
  TestRun continued(b);
  continued.run();
  EXPECT_FALSE(continued.weights().equal(fresh.weights()));
}

// LARS with the rate in its buffer and with the rate in the step are one method at a constant rate (optim/lars.h); where the
// rate changes they part, unless the buffer is multiplied by the ratio.
TEST(Branch, RescaledIsTheMethodWithTheRateOutsideOfItsBuffer) {
  const auto after_branch = [](const std::string& rate_in, const std::string& state, double rate) {
    RunSettings s = small_settings();
    s.optimizer = "lars";
    s.optimizer_settings = {"rate_in=" + rate_in, "trust_coefficient=0.1"};
    s.train.updates = 6;
    s.train.checkpoint_every = 3;
    TestRun parent(s);
    parent.run();
    RunSettings b = branch_at(s, parent.listener.checkpoints.at("u000003"));
    b.train.branch.optimizer = state;
    b.train.learning_rate = rate;
    const auto& entry = find_entry(optimizer_registry(), "lars", "optimizer");
    const auto options = entry.make_options();
    OptionTable table;
    options->bind(table);
    table.set_from_text("rate_in=" + rate_in, "test");
    b.branch->rate_in_slot = entry.traits(*options).rate_in_slot;
    TestRun branch(b);
    branch.run();
    return branch.weights();
  };
  const at::Tensor outside = after_branch("step", "kept", 0.5);
  // float64 and a hundred weights: 1e-13 is rounding, and the change by the ratio 1e-3 or more.
  EXPECT_LT(relative_difference(after_branch("buffer", "rescaled", 0.5), outside), 1e-12);
  EXPECT_GT(relative_difference(after_branch("buffer", "kept", 0.5), outside), 1e-4);
  EXPECT_TRUE(after_branch("step", "rescaled", 0.5).equal(outside)) << "no buffer holds the rate";
  EXPECT_TRUE(after_branch("buffer", "rescaled", 0.05).equal(after_branch("buffer", "kept", 0.05)));
}

TEST(AnnealLength, IsTheShareButNeverShorterThanTheMomentumsMemory) {
  EXPECT_EQ(anneal_length(0.2, 1000, 0.9), 200);
  EXPECT_EQ(anneal_length(0.2, 1001, 0.9), 201);
  EXPECT_EQ(anneal_length(0.2, 40, 0.9), 30);  // 3 / (1 - 0.9)
  EXPECT_EQ(anneal_length(0.2, 4, 0.0), 3);
  EXPECT_EQ(anneal_length(0.4, 5, 0.99), 300);
  EXPECT_EQ(anneal_length(0, 1000, 0.9), 0);
}

TEST(Branch, AnAnnealingFallsLinearlyAndEndsWhateverTheProtocol) {
  RunSettings s = small_settings();
  s.train.protocol = "B";
  s.train.target_loss = 5;  // reached at the first check
  s.train.max_gradients = 100000;
  s.train.check_every = 50;
  s.train.checkpoint_every = 1;
  s.schedule.warmup = 0.5;
  s.train.target_loss = 1e-9;
  s.train.max_gradients = 1000;  // 20 updates, 10 of them warm-up
  TestRun parent(s);
  parent.run();
  RunSettings b = branch_at(s, parent.listener.checkpoints.at("u000004"));
  b.train.target_loss = 5;
  b.train.branch.anneal = 1;
  b.branch->anneal_updates = 8;
  TestRun branch(b);
  const TrainResult result = branch.run();
  EXPECT_EQ(result.status, RunState::finished);
  ASSERT_EQ(branch.listener.updates.size(), 8u);
  const double rate = 0.05 * 5 / 10;  // of the warm-up's fifth update
  for (size_t k = 0; k < 8; ++k)
    EXPECT_DOUBLE_EQ(branch.listener.updates[k].learning_rate, rate * (1 - static_cast<double>(k) / 8)) << k;
  EXPECT_EQ(number(result, "updates"), 12);
  EXPECT_TRUE(std::isnan(number(result, "steps_to_target")));
}

TEST(Branch, OfAnotherBatchSizeGoesOnWhereItsOwnBudgetStands) {
  RunSettings s = small_settings();
  s.train.protocol = "A-epochs";
  s.train.epochs = 2;  // 400 examples, 8 updates
  s.train.checkpoint_every = 2;
  s.schedule.schedule = "polynomial";
  s.schedule.power = 1;
  TestRun parent(s);
  parent.run();
  RunSettings b = branch_at(s, parent.listener.checkpoints.at("u000002"));
  b.train.batch_size = 100;
  TestRun branch(b);
  const TrainResult result = branch.run();
  EXPECT_EQ(branch.listener.updates.size(), 3u);  // 300 examples are left
  EXPECT_EQ(number(result, "examples"), 400);
  EXPECT_EQ(number(result, "updates"), 5);
  // Its own schedule has 4 updates, of which it makes the last 3.
  EXPECT_DOUBLE_EQ(branch.listener.updates[0].learning_rate, 0.05 * 0.75);
  EXPECT_DOUBLE_EQ(branch.listener.updates[2].learning_rate, 0.05 * 0.25);
}

TEST(Branch, AHookOfItsOwnBeginsAtItsWeights) {
  RunSettings s = small_settings();
  s.train.checkpoint_every = 4;
  TestRun parent(s);
  parent.run();
  const Checkpoint& at = parent.listener.checkpoints.at("u000004");
  RunSettings b = branch_at(s, at);
  b.train.hook<WeightAverageOptions>().decay = 0.5;
  TestRun branch(b);
  branch.run();
  const double share = 1 - WeightAverage::decay_of(0.5, 5);
  const Checkpoint &average = branch.listener.checkpoints.at("average"),
                   &end = branch.listener.checkpoints.at("end");
  for (size_t i = 0; i < at.parameters.size(); ++i) {
    const at::Tensor& from = at.parameters[i].tensor;
    const at::Tensor expected = from + share * (end.parameters[i].tensor - from);
    EXPECT_TRUE(at::allclose(average.parameters[i].tensor, expected, 1e-12, 1e-14)) << at.parameters[i].name;
  }
}

TEST(Branch, IsRefusedWithoutABudgetOrWithAStateThatDoesntFit) {
  RunSettings s = small_settings();
  TestRun parent(s);
  parent.run();
  const Checkpoint& end = parent.listener.checkpoints.at("end");
  EXPECT_THAT(
      message_of([&] { TestRun branch(branch_at(s, end)); }),
      HasSubstr("nothing is left of the budget (5 updates) after the parent's 5 updates and 250 examples"));
  RunSettings more = branch_at(s, end);
  more.train.branch.updates = 2;
  TestRun branch(more);
  EXPECT_EQ(branch.run().status, RunState::finished);
  EXPECT_EQ(branch.trainer->updates_done(), 7);
  more.optimizer_settings = {"momentum=0"};
  EXPECT_THAT(message_of([&] { TestRun other(more); }), HasSubstr("\"reset\" begins without its state"));
}

TEST(Branch, OfAnotherSeedHasNoDistanceFromAStartThatItDoesntKnow) {
  RunSettings s = small_settings();
  s.train.checkpoint_every = 2;
  TestRun parent(s);
  parent.run();
  RunSettings b = branch_at(s, parent.listener.checkpoints.at("u000002"));
  b.branch->point.same_start = false;
  TestRun branch(b);
  EXPECT_TRUE(std::isnan(number(branch.run(), "distance_from_start")));
}

// With 200 examples batches of 50 from position 0 never cross the end of an epoch; from position 30 the fourth does, and has
// examples twice.
TEST(Branch, NoiseIsRefusedByTheBatchesThatItHas) {
  RunSettings s = small_settings();
  s.train.updates = 1;
  s.train.batch_size = 30;
  s.train.checkpoint_every = 1;
  TestRun parent(s);
  parent.run();
  s.train.updates = 5;
  s.train.batch_size = 50;
  s.train.hook<ExampleNoiseOptions>().batch = 50;
  EXPECT_EQ(message_of([&] { TestRun plain(s); }), "no error");
  const RunSettings branch = branch_at(s, parent.listener.checkpoints.at("u000001"));
  EXPECT_THAT(message_of([&] { TestRun run(branch); }), HasSubstr("what the batch of update 5 is worth"));
}

}  // namespace
}  // namespace basin::testing
