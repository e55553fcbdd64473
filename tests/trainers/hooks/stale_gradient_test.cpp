// Training by stale gradients against the same order of arrivals made by hand, and where it equals something else.
#include "trainers/hooks/stale_gradient.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "ranks/worker_links.h"
#include "tests/support/rank_threads.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/ledger.h"
#include "trainers/hooks/noise_gauge.h"

namespace basin::testing {
namespace {

RunSettings stale(int64_t workers, int64_t bound, const std::string& delays = "exponential") {
  RunSettings s = small_settings();
  s.train.updates = 60;
  s.train.batch_size = 20;
  s.train.hook<StaleGradientOptions>() = {
      .mode = "ssp", .workers = workers, .bound = bound, .delays = delays, .straggler = 1};
  s.optimizer_settings = {"momentum=0", "weight_decay=0"};
  return s;
}

void put(TestRun& run, const std::vector<at::Tensor>& weights) {
  const at::NoGradGuard no_grad;
  const auto parameters = run.model->parameter_table();
  for (size_t i = 0; i < weights.size(); ++i) at::Tensor(parameters[i].tensor).copy_(weights[i]);
}

std::vector<at::Tensor> weights_of(const TestRun& run) {
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& parameter : run.model->parameter_table())
    weights.push_back(parameter.tensor.detach().clone());
  return weights;
}

/// The record's staleness and batch say all: each update by hand from the weights of then, gradients by autograd alone.
at::Tensor by_hand(const RunSettings& settings, const std::vector<UpdateRecord>& updates, double momentum) {
  TestRun hand(settings);
  std::vector<std::vector<at::Tensor>> versions{weights_of(hand)};
  std::vector<at::Tensor> buffer;
  for (const at::Tensor& w : versions[0]) buffer.push_back(at::zeros_like(w));
  for (const UpdateRecord& update : updates) {
    const auto staleness = static_cast<size_t>(update.hook_values.at(1));
    const auto batch = static_cast<int64_t>(update.hook_values.at(3));
    put(hand, versions.at(versions.size() - 1 - staleness));
    const std::vector<at::Tensor> gradient = plain_gradient(hand, batch * 20, 20);
    std::vector<at::Tensor> next;
    for (size_t i = 0; i < gradient.size(); ++i) {
      buffer[i] = momentum * buffer[i] + gradient[i];
      next.push_back(versions.back()[i] - update.learning_rate * buffer[i]);
    }
    versions.push_back(std::move(next));
  }
  put(hand, versions.back());
  return hand.weights();
}

double largest(const std::vector<UpdateRecord>& updates, size_t column) {
  double most = 0;
  for (const UpdateRecord& update : updates) most = std::max(most, update.hook_values.at(column));
  return most;
}

// 60 updates of float64 in another order of sums.
TEST(StaleGradient, IsTheRecordedOrderByHand) {
  for (const int64_t bound : {0, 2, -1}) {
    RunSettings s = stale(4, bound);
    s.optimizer_settings = {"momentum=0.5", "weight_decay=0"};
    TestRun run(s);
    run.run();
    ASSERT_EQ(run.listener.updates.size(), 60U);
    EXPECT_GE(largest(run.listener.updates, 1), 3);
    EXPECT_LE(relative_difference(run.weights(), by_hand(s, run.listener.updates, 0.5)), 1e-12) << bound;
  }
}

TEST(StaleGradient, OfOneWorkerIsThePlainRun) {
  RunSettings s = stale(1, 0);
  TestRun alone(s);
  s.train.hook<StaleGradientOptions>().mode = "one";
  TestRun plain(s);
  alone.run();
  plain.run();
  EXPECT_TRUE(alone.weights().equal(plain.weights()));
}

// K updates at one place, of K batches: one update of their union with K times the rate. The loss's sums are in another order.
TEST(StaleGradient, BulkSynchronousIsALargeBatchOfSgd) {
  RunSettings s = stale(3, 0);
  TestRun workers(s);
  s.train.hook<StaleGradientOptions>().mode = "one";
  s.train.updates = 20;
  s.train.batch_size = 60;
  s.train.learning_rate *= 3;
  TestRun large(s);
  workers.run();
  large.run();
  EXPECT_LE(relative_difference(workers.weights(), large.weights()), 1e-12);
}

// Dropout masks and crops go with the batch, as its worker would draw them, in whatever order gradients arrive.
TEST(StaleGradient, DrawsByTheBatch) {
  RunSettings s = noisy_settings("sgd");
  s.train.hook<StaleGradientOptions>() = {
      .mode = "ssp", .workers = 3, .bound = -1, .delays = "exponential", .straggler = 1};
  s.train.learning_rate = 0;  // weights of all versions are the same
  s.optimizer_settings = {"weight_decay=0"};
  TestRun stale(s);
  stale.run();
  s.train.hook<StaleGradientOptions>().mode = "one";
  s.train.updates += 2;  // a batch under way at the end may be skipped, and one behind it not
  TestRun plain(s);
  plain.run();
  int out_of_order = 0;
  for (size_t i = 0; i < stale.listener.updates.size(); ++i) {
    const auto batch = static_cast<size_t>(stale.listener.updates[i].hook_values.at(3));
    out_of_order += batch != i;
    EXPECT_EQ(stale.listener.updates[i].loss, plain.listener.updates.at(batch).loss) << i;
  }
  EXPECT_GE(out_of_order, 3);
}

TEST(StaleGradient, SaysHowStaleItWas) {
  TestRun run(stale(4, -1, "constant"));
  const TrainResult result = run.run();
  // Turns: 0, 1, 2, then 3 at each of the other 57.
  EXPECT_DOUBLE_EQ(number(result, "staleness_mean"), (0 + 1 + 2 + 57 * 3) / 60.0);
  EXPECT_EQ(number(result, "staleness_max"), 3);
  EXPECT_EQ(number(result, "worker_lead_max"), 1);
  EXPECT_EQ(number(result, "worker_wait_share"), 0);
  EXPECT_DOUBLE_EQ(number(result, "worker_updates_per_step"), 4);
}

TEST(StaleGradient, RefusesWhatItWouldMakeWrong) {
  const auto message = [](const RunSettings& s) {
    try {
      TestRun run(s);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  RunSettings grows = stale(2, 0);
  grows.train.batch_milestones = {0.5};
  EXPECT_THAT(message(grows), ::testing::HasSubstr("batch_milestones exclude each other"));
  RunSettings gauged = stale(2, 0);
  gauged.train.hook<NoiseGaugeOptions>().every = 2;
  EXPECT_THAT(message(gauged),
              ::testing::HasSubstr("noise_scale_every and parallel.mode exclude each other"));
  RunSettings booked = stale(2, 0);
  booked.train.hook<LedgerGaugeOptions>().every = 2;
  EXPECT_THAT(message(booked), ::testing::HasSubstr("ledger_every and parallel.mode exclude each other"));
  RunSettings pairs = stale(2, 0);
  pairs.optimizer = "lbfgs";
  pairs.optimizer_settings = {"overlap=0.5"};
  EXPECT_THAT(message(pairs), ::testing::HasSubstr("overlap exclude each other"));
  RunSettings slow = stale(2, 0, "real");
  slow.train.hook<StaleGradientOptions>().straggler = 4;
  EXPECT_THAT(message(slow),
              ::testing::HasSubstr("parallel.straggler = 4 and parallel.delays = \"real\" exclude"));
}

/// A server and three workers, threads of this process, each with a run of its own; the server's updates, and its weights.
struct Pushed {
  std::vector<UpdateRecord> updates;
  at::Tensor weights;
  TrainResult result;
};

Pushed pushed_run(const RunSettings& settings) {
  Pushed found;
  const std::vector<std::string> faults = on_ranks(4, [&](RankGroup& ranks) {
    RunSettings mine = settings;
    int64_t weights = 0;
    {
      RunSettings plain = settings;
      plain.train.hook<StaleGradientOptions>().mode = "one";
      weights = TestRun(plain).model->parameter_count();
    }
    if (!ranks.is_first()) {
      ServerLink server(ranks, weights, at::kDouble);
      mine.is_worker = true;
      TestRun(mine).trainer->work_for(server);
      return;
    }
    WorkerLinks workers(ranks, weights, at::kDouble);
    mine.workers = &workers;
    TestRun run(mine);
    found.result = run.run();
    if (workers.finish()) throw std::runtime_error("a worker was lost");
    found.updates = run.listener.updates;
    found.weights = run.weights();
  });
  EXPECT_THAT(faults, ::testing::Each(""));
  return found;
}

// Who comes when is chance. What the server did is what the record says, and the bound holds: no lead above s + 1, no staleness above
// 2 (2 s + 1).
TEST(PushedGradient, IsTheRecordedOrderByHand) {
  for (const int64_t bound : {0, 2, -1}) {
    RunSettings s = stale(3, bound, "real");
    s.optimizer_settings = {"momentum=0.5", "weight_decay=0"};
    const Pushed pushed = pushed_run(s);
    ASSERT_EQ(pushed.updates.size(), 60U);
    RunSettings plain = s;
    plain.train.hook<StaleGradientOptions>().mode = "one";
    EXPECT_LE(relative_difference(pushed.weights, by_hand(plain, pushed.updates, 0.5)), 1e-12) << bound;
    if (bound < 0) continue;
    EXPECT_LE(largest(pushed.updates, 2), static_cast<double>(bound + 1));
    EXPECT_LE(largest(pushed.updates, 1), static_cast<double>(2 * (2 * bound + 1)));
    EXPECT_GE(number(pushed.result, "staleness_max"), 2) << "three workers that begin together";
  }
}

// Dropout masks, crops and ghost batches are drawn by the order: bulk-synchronous workers at rate 0 see the losses of the plain run, in some
// order within a round.
TEST(PushedGradient, DrawsByTheBatch) {
  RunSettings s = noisy_settings("sgd");
  s.train.hook<StaleGradientOptions>() = {
      .mode = "ssp", .workers = 3, .bound = 0, .delays = "real", .straggler = 1};
  s.train.learning_rate = 0;
  s.train.updates = 9;
  s.train.dtype = "float64";
  s.optimizer_settings = {"weight_decay=0"};
  const Pushed pushed = pushed_run(s);
  s.train.hook<StaleGradientOptions>().mode = "one";
  TestRun plain(s);
  plain.run();
  std::vector<double> losses(9, NAN);
  for (const UpdateRecord& update : pushed.updates)
    losses.at(static_cast<size_t>(update.hook_values.at(3))) = update.loss;
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], plain.listener.updates[i].loss, 1e-13 * losses[i]) << i;
}

TEST(PushedGradient, NeedsItsRanks) {
  EXPECT_THAT([] { TestRun run(stale(3, 0, "real")); },
              ::testing::ThrowsMessage<ConfigError>(
                  ::testing::HasSubstr("needs parallel.workers + 1 = 4 ranks, not 1")));
}

}  // namespace
}  // namespace basin::testing
