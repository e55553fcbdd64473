// Loops of our own: lane_sum(), with_wide_registers() and for_each_chunk().
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/math/lane_sum.h"
#include "core/math/parallel_chunks.h"
#include "core/math/wide_registers.h"
#include "tests/core/math/wide_loop.h"

namespace basin {
namespace {

TEST(LaneSum, IsExactOnWholeNumbersWhateverTheirCount) {
  for (const int64_t n : {0, 1, 15, 16, 17, 32, 33, 1000}) {
    // Sums of whole numbers below 2^53 are exact in any order: n (n - 1) / 2.
    EXPECT_EQ(lane_sum(n, [](int64_t i) { return static_cast<double>(i); }),
              0.5 * static_cast<double>(n * (n - 1)))
        << n;
  }
}

std::vector<double> normal_numbers(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(1003);  // no multiple of any register's length
  for (double& number : numbers) number = normal(random);
  return numbers;
}

// The widths that this processor lacks can't be tried on it.
TEST(WideRegisters, NoWidthChangesABit) {
  const std::vector<double> x = normal_numbers(1), y = normal_numbers(2), z = normal_numbers(3);
  const std::vector<double> narrow = testing::wide_loop(128, x, y, z);
  ASSERT_EQ(narrow.size(), x.size());
  for (const int width : {256, 512}) {
    if (width <= wide::widest()) {
      EXPECT_EQ(narrow, testing::wide_loop(width, x, y, z)) << width;
    }
  }
}

TEST(WideRegisters, AWidthThatIsNotThereIsRefused) {
  const std::vector<double> one = {1};
  for (const int width : {0, 64, 256, 512, 1024}) {
    const bool there = (width == 256 || width == 512) && width <= wide::widest();
    EXPECT_EQ(testing::wide_loop(width, one, one, one).empty(), !there) << width;
  }
}

TEST(WideRegisters, TheWidestRunsTheLoopOnce) {
  int runs = 0;
  with_wide_registers([&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

class ForEachChunk : public ::testing::Test {
 protected:
  void TearDown() override { at::set_num_threads(before_); }
  const int before_ = at::get_num_threads();
};

TEST_F(ForEachChunk, TakesEachNumberOnce) {
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const int64_t n : {0, 1, 2, 100}) {
      for (const int64_t elements : {kWorthThreads - 1, kWorthThreads}) {
        std::vector<std::atomic<int>> taken(static_cast<size_t>(n));
        for_each_chunk(n, elements, [&](int64_t i) { ++taken[static_cast<size_t>(i)]; });
        for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST_F(ForEachChunk, TwoChunksAreUnderWayAtOnceOnTwoThreads) {
  at::set_num_threads(2);
  std::mutex mutex;
  std::condition_variable started;
  std::set<std::thread::id> threads;
  for_each_chunk(2, kWorthThreads, [&](int64_t) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    started.notify_all();
    // One after the other they would wait here in vain: long enough for a thread on a busy machine.
    started.wait_for(lock, std::chrono::seconds(10), [&] { return threads.size() == 2; });
  });
  EXPECT_EQ(threads.size(), 2u);
}

}  // namespace
}  // namespace basin
