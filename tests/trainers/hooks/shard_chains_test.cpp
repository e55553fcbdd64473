// Chains on shards against the same chains made by hand.
#include "trainers/hooks/shard_chains.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/lookahead.h"
#include "trainers/hooks/weight_average.h"
#include "trainers/workers/stale_options.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kShards = 3, kBatch = 20,
                  kUpdates = 61;  // the first chain makes one step more than the others

RunSettings sharded() {
  RunSettings s = small_settings();
  s.train.updates = kUpdates;
  s.train.batch_size = kBatch;
  s.train.hook<ShardOptions>().shards = kShards;
  s.optimizer_settings = {"momentum=0.5", "weight_decay=0"};
  return s;
}

RunSettings plain(RunSettings settings) {
  settings.train.hook<ShardOptions>().shards = 0;
  return settings;
}

/// Weights of each chain after its steps: momentum by hand, gradients by autograd alone.
std::vector<at::Tensor> chains_by_hand(const RunSettings& settings) {
  std::vector<at::Tensor> chains;
  for (int64_t c = 0; c < kShards; ++c) {
    TestRun hand(plain(settings));
    const int64_t n = hand.data.train.size();
    const std::vector<int64_t> examples = ShardChains::examples_of(settings.train.seed, n, kShards, c);
    ExampleStream stream = ShardChains::stream_of(settings.train.seed, c, examples.size());
    std::vector<at::Tensor> buffer;
    for (const ParameterInfo& p : hand.model->parameter_table()) buffer.push_back(at::zeros_like(p.tensor));
    for (int64_t step = 0; step * kShards + c < kUpdates; ++step) {
      std::vector<int64_t> batch = stream.slice(step * kBatch, kBatch, false).examples;
      for (int64_t& place : batch) place = examples.at(static_cast<size_t>(place));
      const std::vector<at::Tensor> gradient = plain_gradient(hand, batch);
      const at::NoGradGuard no_grad;
      const auto parameters = hand.model->parameter_table();
      for (size_t i = 0; i < gradient.size(); ++i) {
        buffer[i] = 0.5 * buffer[i] + gradient[i];
        at::Tensor(parameters[i].tensor).sub_(buffer[i], settings.train.learning_rate);
      }
    }
    chains.push_back(hand.weights());
  }
  return chains;
}

TEST(ShardChains, DivideTheData) {
  std::vector<int64_t> all;
  for (int64_t c = 0; c < 4; ++c) {
    const std::vector<int64_t> shard = ShardChains::examples_of(7, 23, 4, c);
    EXPECT_THAT(shard.size(), ::testing::AnyOf(5U, 6U));
    all.insert(all.end(), shard.begin(), shard.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(23);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_NE(ShardChains::examples_of(7, 23, 4, 0), ShardChains::examples_of(8, 23, 4, 0));
}

// 61 updates of float64 in another order of sums.
TEST(ShardChains, AreRunsOfTheirOwnWhoseMeanIsTheRuns) {
  const RunSettings s = sharded();
  TestRun run(s);
  const TrainResult result = run.run();
  const at::Tensor chains = at::stack(chains_by_hand(s)), mean = chains.mean(0);
  EXPECT_LE(relative_difference(run.weights(), mean), 1e-12);
  const double distance = (chains - mean).square().sum(1).mean().sqrt().item<double>();
  EXPECT_NEAR(number(result, "shard_distance"), distance, 1e-12 * distance);
  EXPECT_GT(distance, 1e-3 * mean.norm().item<double>());
}

// A quarter of 20 or 21 steps of a chain, each of them: five samples.
TEST(ShardChains, AreCombinedByTheProductToo) {
  TestRun run(sharded());
  const TrainResult result = run.run();
  for (const char* const name : {"shard_test_acc", "product_train_acc", "product_test_acc"}) {
    EXPECT_GE(number(result, name), 0) << name;
    EXPECT_LE(number(result, name), 1) << name;
  }
  const Checkpoint product = run.listener.checkpoints.at("product"), end = run.listener.checkpoints.at("end");
  double moved = 0;
  for (size_t i = 0; i < end.parameters.size(); ++i)
    moved += (product.parameters[i].tensor - end.parameters[i].tensor).norm().item<double>();
  EXPECT_GT(moved, 0);
  EXPECT_EQ(end.states.at("shard_0_samples").front().second.size(0), 5);
  EXPECT_EQ(end.states.at("shard_2_samples").front().second.size(0), 5);
}

TEST(ShardChains, GoOnWhereTheyWere) {
  TestRun whole(sharded()), part(sharded());
  whole.run();
  part.run_until(59);  // between samples
  TestRun rest(sharded());
  rest.trainer->restore(part.listener.checkpoints.at("latest"));
  rest.run();
  EXPECT_TRUE(rest.weights().equal(whole.weights()));
  EXPECT_TRUE(rest.listener.checkpoints.at("product").parameters[0].tensor.equal(
      whole.listener.checkpoints.at("product").parameters[0].tensor));
}

TEST(ShardChains, RefuseWhatMovesTheirMean) {
  RunSettings slow = sharded();
  slow.train.hook<LookaheadOptions>().every = 5;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(slow); }),
              HasSubstr("lookahead_every and parallel.shards exclude each other"));
  RunSettings stale = sharded();
  stale.train.hook<StaleGradientOptions>().mode = "ssp";
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(stale); }),
              HasSubstr("parallel.shards and parallel.mode = \"ssp\" exclude each other"));
  RunSettings averaged = sharded();
  averaged.train.hook<WeightAverageOptions>().decay = 0.9;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(averaged); }),
              HasSubstr("weight_average and parallel.shards exclude each other"));
  RunSettings noisy = sharded();
  noisy.train.hook<ExampleNoiseOptions>().batch = 2;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(noisy); }),
              HasSubstr("parallel.shards and noise.batch"));
  RunSettings counted = sharded();
  counted.train.protocol = "B";
  counted.train.max_gradients = 1000;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(counted); }),
              HasSubstr("parallel.shards and protocol = \"B\" with duplicates = \"weighted\""));
  RunSettings many = sharded();
  many.train.hook<ShardOptions>().shards = 201;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(many); }),
              HasSubstr("some chains would stay where they begin"));
  many.train.updates = 201;
  EXPECT_THAT(message_of<ConfigError>([&] { TestRun run(many); }),
              HasSubstr("parallel.shards = 201 of 200 training examples"));
}

}  // namespace
}  // namespace basin::testing
