// The average against sums done by hand; the run that it is taken of must not notice.
#include "trainers/hooks/weight_average.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/network_inputs.h"
#include "tests/trainers/test_run.h"

namespace basin::testing {
namespace {

RunSettings averaged(double decay) {
  RunSettings s = small_settings();
  s.train.updates = 40;
  s.train.hook<WeightAverageOptions>().decay = decay;
  s.data.validation = 0.1;
  return s;
}

/// All weights after each update.
struct Path : TrainObserver {
  explicit Path(const TestRun& run) : run_(run) {}
  void on_update(const UpdateRecord&) override { weights.push_back(run_.weights()); }
  const TestRun& run_;
  std::vector<at::Tensor> weights;
};

at::Tensor flat(const Checkpoint& checkpoint) {
  std::vector<at::Tensor> parts;
  for (const ParameterInfo& p : checkpoint.parameters) parts.push_back(p.tensor.reshape({-1}));
  return at::cat(parts);
}

TEST(WeightAverageTest, WeighsTheWeightsAsItsFormulaSays) {
  for (const double decay : {0.7, 0.999}) {
    TestRun run(averaged(decay));
    Path path(run);
    run.trainer->observe(path);
    at::Tensor expected = run.weights();
    run.run();
    for (size_t t = 1; t <= 40; ++t) {
      const double d = std::min(decay, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
      expected = d * expected + (1 - d) * path.weights.at(t - 1);
    }
    EXPECT_LE(relative_difference(flat(run.listener.checkpoints.at("average")), expected), 1e-14) << decay;
    EXPECT_GT(relative_difference(run.weights(), expected), 1e-3) << "nothing to average";
  }
}

TEST(WeightAverageTest, DecaysSlowerAsTheRunGrowsOlder) {
  EXPECT_EQ(WeightAverage::decay_of(0.999, 1), 2.0 / 11);
  EXPECT_EQ(WeightAverage::decay_of(0.999, 90), 0.91);
  EXPECT_EQ(WeightAverage::decay_of(0.9, 90), 0.9);
  EXPECT_EQ(WeightAverage::decay_of(0.999, 100000), 0.999);
}

TEST(WeightAverageTest, IsEvaluatedOnEverySplit) {
  TestRun run(averaged(0.9)), at_average(averaged(0.9));
  const TrainResult result = run.run();
  const Checkpoint& average = run.listener.checkpoints.at("average");
  EXPECT_EQ(average.update, 40);
  restore_model(*at_average.model, average);
  const Dataset& data = at_average.data;
  const std::pair<const char*, const Split*> splits[] = {
      {"train", &data.train}, {"validation", &data.validation}, {"test", &data.test}};
  for (const auto& [name, split] : splits) {
    const at::NoGradGuard no_grad;
    const at::Tensor all = at::arange(split->size(), at::kLong);
    const at::Tensor logits =
        at_average.model->forward(network_inputs(data, *split, all, at::kDouble, at::kCPU));
    const at::Tensor own = logits.gather(1, split->labels.unsqueeze(1)).squeeze(1);
    const std::string key = std::string("average_") + name;
    EXPECT_NEAR(number(result, key + "_loss"), (logits.exp().sum(1).log() - own).mean().item<double>(),
                1e-12);
    EXPECT_EQ(number(result, key + "_acc"),
              (own >= std::get<0>(logits.max(1))).mean(at::kDouble).item<double>());
  }
  EXPECT_EQ(std::get<double>(average.progress.at("train_loss")), number(result, "average_train_loss"));
  EXPECT_NE(number(result, "average_train_loss"), number(result, "train_loss"));
}

RunSettings noisy(double decay) {
  RunSettings s = averaged(decay);
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  s.train.dtype = "float32";
  s.train.updates = 6;
  s.train.evaluate_every = 100;
  s.train.checkpoint_every = 3;
  return s;
}

TEST(WeightAverageTest, LeavesTheRunAsItWas) {
  TestRun with(noisy(0.9)), without(noisy(0));
  const TrainResult a = with.run(), b = without.run();
  for (const auto& [key, value] : b.summary) {
    if (key.find("seconds") != std::string::npos || key.find("per_second") != std::string::npos) continue;
    EXPECT_EQ(fmt::format("{}", number(a, key)), fmt::format("{}", number(b, key))) << key;
  }
  EXPECT_EQ(a.test.loss, b.test.loss);
  ASSERT_EQ(with.listener.evaluations.size(), without.listener.evaluations.size());
  for (size_t t = 0; t < 6; ++t) {
    EXPECT_EQ(with.listener.updates.at(t).loss, without.listener.updates.at(t).loss);
  }
  EXPECT_TRUE(with.weights().equal(without.weights())) << "the average was left in its place";
  for (size_t i = 0; i < with.model->buffer_table().size(); ++i) {
    EXPECT_TRUE(with.model->buffer_table()[i].second.equal(without.model->buffer_table()[i].second));
  }
  for (const auto& [label, checkpoint] : without.listener.checkpoints) {
    const Checkpoint& other = with.listener.checkpoints.at(label);
    EXPECT_TRUE(flat(other).equal(flat(checkpoint))) << label;
    for (size_t i = 0; i < checkpoint.buffers.size(); ++i)
      EXPECT_TRUE(other.buffers[i].second.equal(checkpoint.buffers[i].second)) << label;
    for (size_t i = 0; i < checkpoint.optimizer.size(); ++i)
      EXPECT_TRUE(other.optimizer[i].second.equal(checkpoint.optimizer[i].second)) << label;
    EXPECT_TRUE(checkpoint.states.empty());
  }
  EXPECT_EQ(with.listener.checkpoints.size(), without.listener.checkpoints.size() + 1);
}

TEST(WeightAverageTest, HasRunningStatisticsOfItsOwn) {
  TestRun run(noisy(0.9)), again(noisy(0));
  run.run();
  const Checkpoint& average = run.listener.checkpoints.at("average");
  const Checkpoint& end = run.listener.checkpoints.at("end");
  restore_model(*again.model, average);
  again.model->reset_running_statistics();
  refresh_running_statistics(*again.model, {again.data, LossKind::cross_entropy, 256, at::kFloat, at::kCPU},
                             50);
  for (size_t i = 0; i < average.buffers.size(); ++i) {
    EXPECT_TRUE(average.buffers[i].second.equal(again.model->buffer_table()[i].second));
    EXPECT_FALSE(average.buffers[i].second.equal(end.buffers[i].second)) << average.buffers[i].first;
  }
}

TEST(WeightAverageTest, OfADivergedRunIsNotEvaluated) {
  RunSettings s = averaged(0.9);
  s.train.learning_rate = 1e6;
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_EQ(result.status, RunState::diverged);
  EXPECT_TRUE(std::isnan(number(result, "average_test_acc")));
  EXPECT_FALSE(run.listener.checkpoints.count("average"));
}

TEST(WeightAverageTest, IsMissedInACheckpointWithoutIt) {
  TestRun run(averaged(0.9)), other(averaged(0.9));
  run.run();
  Checkpoint checkpoint = run.listener.checkpoints.at("end");
  ASSERT_EQ(checkpoint.state("average").size(), checkpoint.parameters.size());
  checkpoint.states.at("average").pop_back();
  EXPECT_THROW(other.trainer->restore(checkpoint), IoError);
}

}  // namespace
}  // namespace basin::testing
