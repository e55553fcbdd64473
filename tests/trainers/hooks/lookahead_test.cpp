// Lookahead against a loop done by hand; what it leaves alone; where the run ends.
#include "trainers/hooks/lookahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/weight_average.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;
constexpr double kMomentum = 0.8;
// Sums of the gradient in another order: some 1e-16 per update, a few updates.
constexpr double kRounding = 1e-13;

RunSettings looking_ahead(int64_t every, double alpha, const std::string& schedule, int64_t updates) {
  RunSettings s = small_settings();
  s.train.updates = updates;
  s.train.hook<LookaheadOptions>().every = every;
  s.train.hook<LookaheadOptions>().alpha = alpha;
  s.train.hook<LookaheadOptions>().schedule = schedule;
  s.optimizer_settings = {"momentum=0.8"};
  return s;
}

/// All weights after each update.
struct Path : TrainObserver {
  explicit Path(const TestRun& run) : run_(run) {}
  void on_update(const UpdateRecord&) override { weights.push_back(run_.weights()); }
  const TestRun& run_;
  std::vector<at::Tensor> weights;
};

/// Weights, slow weights and momentum of heavy-ball SGD with Lookahead written out, float64; gradients by
/// autograd alone.
class ByHand {
 public:
  explicit ByHand(const RunSettings& settings) : run_(settings), rate_(settings.train.learning_rate) {
    for (const ParameterInfo& p : run_.model->parameter_table()) {
      slow_.push_back(p.tensor.detach().clone());
      momentum_.push_back(at::zeros_like(slow_.back()));
    }
  }
  void step(int64_t t) {
    const int64_t size = run_.settings.train.batch_size;
    const std::vector<at::Tensor> gradient = plain_gradient(run_, (t - 1) * size, size);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < slow_.size(); ++i) {
      momentum_[i] = kMomentum * momentum_[i] + gradient[i];
      weight(i).copy_(weight(i) - rate_ * momentum_[i]);
    }
  }
  void synchronise(double decay) {  // the slow weights' share that stays
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < slow_.size(); ++i) {
      slow_[i] = decay * slow_[i] + (1 - decay) * weight(i);
      weight(i).copy_(slow_[i]);
    }
  }
  at::Tensor weights() const { return run_.weights(); }

 private:
  at::Tensor weight(size_t i) const { return run_.model->parameter_table()[i].tensor; }
  TestRun run_;
  double rate_;
  std::vector<at::Tensor> slow_, momentum_;
};

/// `updates` of a run of `planned` ones, against the run's weights after each.
void expect_by_hand(const RunSettings& settings, int64_t updates, int64_t planned,
                    const std::function<double(double)>& decay_at) {
  TestRun run(settings);
  Path path(run);
  run.trainer->observe(path);
  run.run();
  ByHand hand(settings);
  ASSERT_EQ(path.weights.size(), static_cast<size_t>(updates));
  for (int64_t t = 1; t <= updates; ++t) {
    hand.step(t);
    if (t % settings.train.hook<LookaheadOptions>().every == 0)
      hand.synchronise(decay_at(static_cast<double>(t) / static_cast<double>(planned)));
    if (t == planned) hand.synchronise(1);
    const at::Tensor& found = path.weights.at(static_cast<size_t>(t - 1));
    EXPECT_LE(relative_difference(found, hand.weights()), kRounding) << t;
  }
  EXPECT_LE(relative_difference(run.weights(), hand.weights()), kRounding);
}

TEST(LookaheadTest, IsThePapersAlgorithm) {
  const auto half = [](double) { return 0.5; };
  expect_by_hand(looking_ahead(3, 0.5, "constant", 7), 7, 7, half);
  expect_by_hand(looking_ahead(3, 0.5, "constant", 6), 6, 6, half);
  expect_by_hand(looking_ahead(2, 0.8, "constant", 7), 7, 7, [](double) { return 0.2; });
}

// alpha_schedule of legacy/airbench94.py: its decay is 1 - alpha.
TEST(LookaheadTest, HasTheScheduleOfAirbench94) {
  const auto airbench = [](double share) { return std::pow(0.95, 5) * share * share * share; };
  const double alpha = 1 - 0.7737809375;
  expect_by_hand(looking_ahead(5, alpha, "cubic", 12), 12, 12, airbench);
  expect_by_hand(looking_ahead(1, alpha, "cubic", 4), 4, 4, airbench);
}

// 4,000 gradients are 80 updates of 50: the T of the schedule. A run that stops before keeps its weights.
TEST(LookaheadTest, CountsOnTheCapUnderProtocolB) {
  RunSettings s = looking_ahead(3, 0.1, "cubic", 0);
  s.train.protocol = "B";
  s.train.max_gradients = 4000;
  s.train.check_every = 50;
  s.train.target_loss = 0.36;
  TestRun run(s);
  const TrainResult result = run.run();
  ASSERT_EQ(result.status, RunState::finished);
  ASSERT_EQ(number(result, "planned_updates"), 80);
  const auto updates = static_cast<int64_t>(number(result, "updates"));
  ASSERT_GT(updates, 9);  // three synchronisations and an update without
  ASSERT_NE(updates % 3, 0);
  EXPECT_LE(number(result, "train_loss"), 0.36);
  expect_by_hand(s, updates, 80, [](double share) { return 0.9 * share * share * share; });
}

TEST(LookaheadTest, EndsWithTheSlowWeights) {
  TestRun run(looking_ahead(3, 0.5, "constant", 8));
  Path path(run);
  run.trainer->observe(path);
  std::vector<const void*> places;
  for (const ParameterInfo& p : run.model->parameter_table()) places.push_back(p.tensor.const_data_ptr());
  run.run();
  EXPECT_TRUE(run.weights().equal(path.weights.at(5))) << "two updates after the last synchronisation";
  EXPECT_FALSE(path.weights.at(6).equal(path.weights.at(5)));
  const Checkpoint& end = run.listener.checkpoints.at("end");
  const NamedTensors& slow = end.state("slow_weights");
  ASSERT_EQ(slow.size(), end.parameters.size());
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_TRUE(slow[i].second.equal(end.parameters[i].tensor));
    EXPECT_EQ(run.model->parameter_table()[i].tensor.const_data_ptr(), places[i])
        << "a CUDA graph would miss it";
  }
}

// update_norm is of the optimiser's step, distance_from_start of the weights after the synchronisation.
TEST(LookaheadTest, IsNoPartOfTheUpdateNorm) {
  TestRun run(looking_ahead(2, 0.5, "constant", 2));
  Path path(run);
  run.trainer->observe(path);
  const at::Tensor start = run.weights();
  run.run();
  // The slow weights went from the start half the way that both steps make.
  const at::Tensor both = 2 * (path.weights.at(1) - start), first = path.weights.at(0) - start;
  const UpdateRecord& last = run.listener.updates.at(1);
  EXPECT_NEAR(last.update_norm, (both - first).norm().item<double>(), 1e-13);
  EXPECT_NEAR(last.distance_from_start, both.norm().item<double>() / 2, 1e-13);
}

RunSettings with_statistics(int64_t every) {
  RunSettings s = looking_ahead(every, 1, "constant", 6);
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  s.train.dtype = "float32";
  return s;
}

TEST(LookaheadTest, WithAStepOfOneLeavesTheRunAsItWas) {
  TestRun with(with_statistics(3)), without(with_statistics(0));
  const TrainResult a = with.run(), b = without.run();
  EXPECT_TRUE(with.weights().equal(without.weights()));
  EXPECT_EQ(a.test.loss, b.test.loss);
  for (size_t t = 0; t < 6; ++t) {
    EXPECT_EQ(with.listener.updates.at(t).loss, without.listener.updates.at(t).loss);
    EXPECT_EQ(with.listener.updates.at(t).update_norm, without.listener.updates.at(t).update_norm);
  }
  EXPECT_TRUE(without.listener.checkpoints.at("end").states.empty());
}

// Not averaged with those of before: a network at the weights of the end has the same, re-estimated.
TEST(LookaheadTest, RunningStatisticsAreThoseOfTheSlowWeights) {
  RunSettings s = with_statistics(4);
  s.train.hook<LookaheadOptions>().alpha = 0.5;
  TestRun run(s), again(s);
  run.run();
  const Checkpoint& end = run.listener.checkpoints.at("end");
  restore_model(*again.model, end);
  again.model->reset_running_statistics();
  refresh_running_statistics(*again.model, {again.data, LossKind::cross_entropy, 256, at::kFloat, at::kCPU},
                             50);
  ASSERT_FALSE(end.buffers.empty());
  for (size_t i = 0; i < end.buffers.size(); ++i)
    EXPECT_TRUE(end.buffers[i].second.equal(again.model->buffer_table()[i].second)) << end.buffers[i].first;
}

TEST(LookaheadTest, TheAverageIsOfTheSynchronisedWeights) {
  RunSettings s = looking_ahead(2, 0.3, "constant", 9);
  s.train.hook<WeightAverageOptions>().decay = 0.5;
  TestRun run(s);
  Path path(run);
  run.trainer->observe(path);
  at::Tensor expected = run.weights();
  run.run();
  for (size_t t = 1; t <= 9; ++t) {
    const double d = std::min(0.5, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
    expected = d * expected + (1 - d) * path.weights.at(t - 1);
  }
  std::vector<at::Tensor> average;
  for (const auto& [name, tensor] : run.listener.checkpoints.at("end").state("average"))
    average.push_back(tensor.reshape({-1}));
  EXPECT_LE(relative_difference(at::cat(average), expected), kRounding);
}

std::string refusal(TestRun& run, const Checkpoint& checkpoint) {
  try {
    run.trainer->restore(checkpoint);
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LookaheadTest, IsMissedInACheckpointWithoutIt) {
  TestRun run(looking_ahead(2, 0.5, "constant", 3)), other(looking_ahead(2, 0.5, "constant", 3)),
      plain(looking_ahead(0, 0.5, "constant", 3));
  run.run();
  Checkpoint checkpoint = run.listener.checkpoints.at("end");
  checkpoint.states.clear();
  EXPECT_EQ(refusal(plain, checkpoint), "no error");
  const std::string first = checkpoint.parameters.front().name;
  EXPECT_EQ(refusal(other, checkpoint), "checkpoint: no slow copy of \"" + first + "\"");
  checkpoint = run.listener.checkpoints.at("end");
  checkpoint.states.at("slow_weights").back().second = at::zeros({3, 3, 3});
  EXPECT_THAT(refusal(other, checkpoint), HasSubstr("another shape than the model's"));
}

TEST(LookaheadTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(message_of([] { TestRun(looking_ahead(8, 0.5, "constant", 7)); }),
            "lookahead_every = 8 is more than the run's updates (7): it would end where it began");
  EXPECT_NO_THROW(TestRun(looking_ahead(7, 0.5, "constant", 7)));
  RunSettings s = looking_ahead(3, 0.5, "constant", 7);
  s.optimizer = "lbfgs";
  s.optimizer_settings = {};
  EXPECT_EQ(message_of([&] { TestRun run(s); }),
            "lookahead_every and an optimiser with overlap exclude each other");
}

}  // namespace
}  // namespace basin::testing
