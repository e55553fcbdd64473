// What is timed on how many ranks, with threads of this process as ranks; what is counted, against numbers by hand.
#include "sweep/scaling/measure.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/message_of.h"
#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::on_ranks;

// 3,072 x 8 and 8 x 10 weights, 8 and 10 biases.
const std::string kStudy =
    "model = 'mlp'\nupdates = 40\nprotocol = 'A-updates'\n[data]\nset = 'synthetic'\ntrain_examples = 200\n"
    "test_examples = 60\n[mlp]\nhidden = [8]\n[probes]\nsubset = 100\nmicro_batch = 25\n[runtime]\nthreads = "
    "1\n"
    "[sweep]\nbatch_size = [16, 64]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2]\n";
constexpr double kBytes = 4 * (3072 * 8 + 8 * 10 + 8 + 10);

std::vector<Cell> cells_of(const std::string& study) { return expand(parse_study(study, "s.toml", {})); }

RunOptions options_of(const std::string& study) { return cells_of(study).front().options; }

TEST(RankScaling, OneCellOfTheLargestBatchForEachOptimiser) {
  const std::vector<Cell> chosen = cells_to_scale(cells_of(kStudy));
  ASSERT_EQ(chosen.size(), 2);
  EXPECT_EQ(chosen[0].options.optimizer, "sgd");
  EXPECT_EQ(chosen[1].options.optimizer, "lamb");
  for (const Cell& cell : chosen) EXPECT_EQ(cell.options.train.batch_size, 64);
}

TEST(RankScaling, CountsDouble) {
  EXPECT_THAT(rank_counts(1), ElementsAre(1));
  EXPECT_THAT(rank_counts(2), ElementsAre(1, 2));
  EXPECT_THAT(rank_counts(6), ElementsAre(1, 2, 4, 6));
}

std::vector<int64_t> sizes(const std::string& study, int most) {
  const TimedSizes found = timed_sizes(options_of(study), most, 1500);
  return {found.strong, found.weak, found.small};
}

TEST(RankScaling, BatchesHoldWholeGhostBatches) {
  const std::string plain = "model = 'mlp'\nbatch_size = 2048\n[data]\nset = 'synthetic'\n",
                    normed = "model = 'davidnet'\nbatch_size = 2048\n";
  EXPECT_THAT(sizes(plain, 3), ElementsAre(1500, 500, 16));  // an example twice in a batch is computed once
  EXPECT_THAT(sizes("duplicates = 'repeated'\n" + plain, 3), ElementsAre(2048, 682, 16));
  // Ghost batches are of 256 by default, or smaller where the batch is.
  EXPECT_THAT(sizes(normed, 3), ElementsAre(2048, 512, 16));
  EXPECT_THAT(sizes(normed + "ghost_batch = 128\nmicro_batch = 128\n", 3), ElementsAre(2048, 640, 128));
  EXPECT_THAT(sizes("model = 'mlp'\nbatch_size = 12\n[data]\nset = 'synthetic'\n", 3), ElementsAre(12, 4, 4));
}

TEST(RankScaling, TimesEveryNumberOfRanksOnceARound) {
  const std::vector<Cell> cells = cells_to_scale(cells_of(kStudy));
  RankScaling found;
  std::vector<double> steps;
  EXPECT_THAT(on_ranks(2,
                       [&](RankGroup& ranks) {
                         const auto step = [&](double done) {
                           if (ranks.is_first()) steps.push_back(done);
                         };
                         RankScaling mine = measure_rank_scaling(cells, ranks, {2, 0.01}, step);
                         if (ranks.is_first()) found = std::move(mine);
                       }),
              Each(""));
  EXPECT_THAT(steps, ElementsAre(0.25, 0.5, 0.75, 1.0));
  std::vector<std::string> seen;
  for (const TimedUpdates& timed : found.updates) {
    seen.push_back(fmt::format("{} {} {} {}", timed.optimizer, timed.ranks, timed.scaling, timed.batch));
    const UpdateTiming& timing = timed.timing;
    const auto updates = static_cast<double>(timing.updates), batch = static_cast<double>(timed.batch);
    EXPECT_GE(updates, 2);
    EXPECT_NEAR(timed.images_per_second() * timing.seconds, batch, 1e-9 * batch);
    if (timed.ranks == 1) continue;
    // The gradients (of less than one bucket's size), the loss, and whether to go on.
    EXPECT_EQ(static_cast<double>(timing.traffic.sums) / updates, 3);
    // What is summed: gradients, each padded to 64 bytes, the loss, and whether to go on.
    EXPECT_GE(static_cast<double>(timing.traffic.bytes) / updates, kBytes);
    EXPECT_LE(static_cast<double>(timing.traffic.bytes) / updates, kBytes + 4 * 64 + 64);
    // All that a ring of two sends, and what else this machine sends meanwhile.
    EXPECT_TRUE(timed.on_one_host);
    EXPECT_GE(timing.wire / updates, 2 * kBytes);
    EXPECT_GT(timing.traffic.waited, 0);
    EXPECT_LT(timing.traffic.waited, timing.seconds * updates);
  }
  const std::vector<std::string> one{"sgd 1 strong 64",  "sgd 1 weak 32",  "sgd 1 small 16",
                                     "lamb 1 strong 64", "lamb 1 weak 32", "lamb 1 small 16"},
      two{"sgd 2 strong 64",  "sgd 2 weak 64",  "sgd 2 small 32",
          "lamb 2 strong 64", "lamb 2 weak 64", "lamb 2 small 32"};
  std::vector<std::string> expected = one;  // and two ranks first in the second round
  for (const auto& part : {two, two, one}) expected.insert(expected.end(), part.begin(), part.end());
  EXPECT_EQ(seen, expected);
  ASSERT_EQ(found.products.size(), 4);
  for (const TimedProducts& timed : found.products) EXPECT_EQ(timed.examples, 100);
  ASSERT_EQ(found.sums.size(), 2 * 9);  // 256 bytes to 16 MB by fours
  EXPECT_EQ(found.sums.front().bytes, 1 << 24);
  EXPECT_EQ(found.sums.back().bytes, 1 << 8);
  EXPECT_GT(found.sums.front().seconds, found.sums.back().seconds);
}

TEST(RankScaling, OneRankHasNothingToCompareWith) {
  EXPECT_THAT(message_of<ConfigError>(
                  [] { measure_rank_scaling(cells_of(kStudy), RankGroup::alone(), {}, [](double) {}); }),
              HasSubstr("nothing to compare with: --ranks 2"));
}

}  // namespace
}  // namespace basin
