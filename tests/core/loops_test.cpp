// Loops of our own: lane_sum(), with_wide_registers() and for_each_chunk().
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "core/lane_sum.h"
#include "core/parallel_chunks.h"
#include "core/wide_registers.h"

namespace basin {
namespace {

TEST(LaneSum, IsExactOnWholeNumbersWhateverTheirCount) {
  for (const int64_t n : {0, 1, 15, 16, 17, 32, 33, 1000}) {
    // Sums of whole numbers below 2^53 are exact in any order: n (n - 1) / 2.
    EXPECT_EQ(lane_sum(n, [](int64_t i) { return static_cast<double>(i); }),
              static_cast<double>(n * (n - 1) / 2))
        << n;
  }
}

// The widths that this processor lacks can't be tried on it.
TEST(WideRegisters, NoWidthChangesABit) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> x(1003), plain(x.size()), chosen(x.size());
  for (double& value : x) value = normal(random);
  const auto loop = [&x](std::vector<double>& out) {
    for (size_t i = 0; i < x.size(); ++i) out[i] = 0.9 * x[i] + 1 / (std::sqrt(std::fabs(x[i])) + 1e-8);
  };
  loop(plain);
  with_wide_registers([&] { loop(chosen); });
  EXPECT_EQ(plain, chosen);
}

TEST(ForEachChunk, TakesEachNumberOnceOnAllThreads) {
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const int64_t n : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> taken(static_cast<size_t>(n));
      for_each_chunk(n, [&](int64_t i) { ++taken[static_cast<size_t>(i)]; });
      for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1);
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace basin
