#include "data/example_stream.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace basin::testing {
namespace {

std::vector<int64_t> whole_stream(int64_t n, int64_t length, int64_t batch) {
  ExampleStream stream(5, n);
  std::vector<int64_t> all;
  for (int64_t start = 0; start < length; start += batch) {
    const Batch b = stream.slice(start, std::min(batch, length - start), false);
    all.insert(all.end(), b.examples.begin(), b.examples.end());
  }
  return all;
}

// From a mt19937_64, Fisher-Yates and SHA-256 seed written in Python (hashlib; the engine checked against the
// number that the C++ standard gives for its 10,000th draw).
TEST(ExampleStream, FirstEpochsAreTheGoldenOnes) {
  ExampleStream one(1, 10), seven(7, 10);
  EXPECT_THAT(one.slice(0, 10, false).examples, ::testing::ElementsAre(8, 5, 7, 0, 2, 1, 4, 3, 6, 9));
  EXPECT_THAT(one.slice(10, 10, false).examples, ::testing::ElementsAre(1, 7, 3, 4, 8, 9, 6, 0, 5, 2));
  EXPECT_THAT(seven.slice(0, 10, false).examples, ::testing::ElementsAre(4, 9, 2, 6, 1, 3, 0, 5, 7, 8));
}

TEST(ExampleStream, EveryEpochHoldsEveryExampleOnceInAnotherOrder) {
  ExampleStream stream(3, 257);
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    std::vector<int64_t> examples = stream.slice(epoch * 257, 257, false).examples;
    orders.insert(examples);
    std::sort(examples.begin(), examples.end());
    for (int64_t i = 0; i < 257; ++i) ASSERT_EQ(examples[static_cast<size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(ExampleStream, OrderDoesNotDependOnBatchSize) {
  const std::vector<int64_t> reference = whole_stream(50, 600, 1);
  for (const int64_t batch : {7, 32, 50, 64, 128, 600})
    EXPECT_EQ(whole_stream(50, 600, batch), reference) << batch;
}

TEST(ExampleStream, AnyPositionCanBeResumed) {
  ExampleStream straight(2, 40), jumping(2, 40);
  const Batch early = straight.slice(0, 100, true), late = straight.slice(100, 100, true);
  EXPECT_EQ(jumping.slice(100, 100, true).examples, late.examples);
  EXPECT_EQ(jumping.slice(0, 100, true).examples, early.examples);
}

TEST(ExampleStream, MergedBatchCountsEachExampleAsOftenAsItComesUp) {
  for (const auto& [n, start, count] : std::vector<std::array<int64_t, 3>>{
           {200, 0, 512}, {200, 512, 512}, {200, 150, 80}, {10, 3, 95}, {1, 0, 9}}) {
    SCOPED_TRACE(fmt::format("n {} start {} count {}", n, start, count));
    ExampleStream stream(4, n);
    const Batch plain = stream.slice(start, count, false), merged = stream.slice(start, count, true);
    std::map<int64_t, int64_t> times, first;
    for (size_t i = 0; i < plain.examples.size(); ++i) {
      ++times[plain.examples[i]];
      first.emplace(plain.examples[i], plain.positions[i]);
    }
    EXPECT_EQ(plain.size, count);
    EXPECT_EQ(merged.size, count);
    EXPECT_EQ(std::accumulate(merged.counts.begin(), merged.counts.end(), int64_t{0}), count);
    ASSERT_EQ(merged.examples.size(), times.size());
    EXPECT_TRUE(
        std::is_sorted(merged.positions.begin(), merged.positions.end()));  // order of first appearance
    for (size_t i = 0; i < merged.examples.size(); ++i) {
      EXPECT_EQ(merged.counts[i], times[merged.examples[i]]);
      EXPECT_EQ(merged.positions[i], first[merged.examples[i]]);
    }
  }
}

TEST(ExampleStream, BatchLargerThanTheSetHoldsEachExampleNearlyEquallyOften) {
  ExampleStream stream(1, 5000);
  const Batch batch = stream.slice(0, 65536, true);
  EXPECT_EQ(batch.examples.size(), 5000u);
  const auto [least, most] = std::minmax_element(batch.counts.begin(), batch.counts.end());
  EXPECT_EQ(*least, 13);  // 65,536 = 13 epochs of 5,000 and 536 more
  EXPECT_EQ(*most, 14);
}

TEST(ExampleStream, EmptyTrainingSetIsRefused) { EXPECT_THROW(ExampleStream(1, 0), ConfigError); }

}  // namespace
}  // namespace basin::testing
