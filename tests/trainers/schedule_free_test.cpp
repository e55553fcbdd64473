// Schedule-free methods in a run: gradients at y, everything else at the average, against plain loops.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/ledger.h"

namespace basin::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

RunSettings settings_of(const std::string& optimizer) {
  RunSettings s = small_settings();
  s.optimizer = optimizer;
  s.train.updates = 4;  // one pass over the 200 examples
  s.train.learning_rate = 0.2;
  s.train.checkpoint_every = 1;
  s.train.evaluate_every = 50;
  return s;
}

void set_weights(TestRun& run, const Tensors& weights) {
  const at::NoGradGuard no_grad;
  for (size_t p = 0; p < weights.size(); ++p) run.model->parameter_table()[p].tensor.copy_(weights[p]);
}

/// Defazio et al. 2024, equations 1 to 3: x after each update.
std::vector<Tensors> averages_by_hand(TestRun& by_hand, double beta) {
  Tensors x;
  for (const ParameterInfo& p : by_hand.model->parameter_table()) x.push_back(p.tensor.detach().clone());
  Tensors z = x;
  std::vector<Tensors> found;
  for (int64_t t = 1; t <= 4; ++t) {
    Tensors y;
    for (size_t p = 0; p < x.size(); ++p) y.push_back((1 - beta) * z[p] + beta * x[p]);
    set_weights(by_hand, y);
    const Tensors g = plain_gradient(by_hand, (t - 1) * 50, 50);
    for (size_t p = 0; p < x.size(); ++p) {
      z[p] = z[p] - 0.2 * g[p];
      x[p] = x[p] + (z[p] - x[p]) / static_cast<double>(t);
    }
    found.push_back(x);
  }
  return found;
}

TEST(ScheduleFreeRun, KeepsAndEvaluatesTheAverage) {
  TestRun run(settings_of("schedule_free_sgd")), by_hand(settings_of("schedule_free_sgd"));
  run.run();
  const std::vector<Tensors> expected = averages_by_hand(by_hand, 0.9);
  for (size_t t = 0; t < 4; ++t) {
    const std::string label = t == 3 ? "end" : fmt::format("u{:06d}", t + 1);
    const Checkpoint& checkpoint = run.listener.checkpoints.at(label);
    for (size_t p = 0; p < expected[t].size(); ++p) {
      // Float64, sums of 50 gradients in another order.
      EXPECT_TRUE(at::allclose(checkpoint.parameters[p].tensor, expected[t][p], 1e-11, 1e-13)) << label;
    }
    set_weights(by_hand, expected[t]);
    const EvaluationRecord& record = run.listener.evaluations.at(t);
    EXPECT_EQ(record.update, static_cast<int64_t>(t + 1));
    const EvaluationSetup setup{by_hand.data, LossKind::cross_entropy, 64, at::kDouble, at::kCPU};
    EXPECT_NEAR(record.train_loss, evaluate(*by_hand.model, setup, by_hand.data.train).loss, 1e-11);
  }
}

// The last weights of a run whose batch loss is beyond its bound are those that it had, not the point where it looked: the first
// update from the third on (until then both are one) with a loss above all before it becomes the last.
TEST(ScheduleFreeRun, ThatDivergesEndsAtTheAverage) {
  RunSettings s = settings_of("schedule_free_sgd");
  s.train.updates = 40;
  s.train.learning_rate = 5;
  s.train.evaluate_every = 0;
  TestRun whole(s);
  whole.run();
  double largest = 0;
  size_t last = 0;
  for (size_t u = 0; u < whole.listener.updates.size() && last == 0; ++u) {
    const double loss = whole.listener.updates[u].loss;
    if (u >= 2 && loss > largest) {
      last = u;
      s.train.divergence_loss = (loss + largest) / 2;
    }
    largest = std::max(largest, loss);
  }
  ASSERT_GT(last, 0U) << "no loss rises";
  TestRun run(s);
  EXPECT_EQ(run.run().status, RunState::diverged);
  EXPECT_EQ(run.trainer->updates_done(), static_cast<int64_t>(last));
  const Checkpoint& expected = whole.listener.checkpoints.at(fmt::format("u{:06d}", last));
  const Checkpoint& end = run.listener.checkpoints.at("end");
  for (size_t p = 0; p < end.parameters.size(); ++p)
    EXPECT_TRUE(at::equal(end.parameters[p].tensor, expected.parameters[p].tensor)) << end.parameters[p].name;
}

TEST(ScheduleFreeRun, GoesOnFromACheckpointWithTheSameBits) {
  for (const char* method : {"schedule_free_sgd", "schedule_free_adamw"}) {
    RunSettings s = with_hooks(noisy_settings(method));
    TestRun whole(s), stopped(s), resumed(s);
    whole.run();
    stopped.run_until(3);
    Checkpoint checkpoint;
    stopped.trainer->save(checkpoint);
    resumed.trainer->restore(checkpoint);
    resumed.run();
    EXPECT_TRUE(at::equal(resumed.weights(), whole.weights())) << method;
  }
}

TEST(ScheduleFreeRun, HasNoLedgerOfWeightsThatItsGradientsAreNotOf) {
  RunSettings s = settings_of("schedule_free_sgd");
  s.train.hook<LedgerGaugeOptions>().every = 1;
  const std::string message = message_of([&] { check_training(s.train, false, 0, true); });
  EXPECT_NE(message.find("ledger_every"), std::string::npos) << message;
  EXPECT_NO_THROW(check_training(s.train, false, 0, false));
}

}  // namespace
}  // namespace basin::testing
