// Time of a sum over ranks on this machine by the size of what is summed, for bench/scaling.py.
//
//   bench_rank_sums RANKS SECONDS
//
// SECONDS: of each size. Prints one line of JSON: ranks, and for each size its bytes and the median seconds of a sum on rank 0.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/provenance.h"
#include "core/runtime.h"
#include "ranks/command_ranks.h"

namespace {

using namespace basin;

constexpr int64_t kSmallest = 1 << 8, kLargest = 1 << 24;  // bytes
constexpr size_t kLeast = 20;                              // sums of each size

double median_seconds(const RankGroup& ranks, int64_t bytes, double seconds) {
  const at::Tensor tensor = at::ones({bytes / 4}, at::kFloat);
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  // All ranks stop together: rank 0's clock decides.
  while (ranks.any(ranks.is_first() && (times.size() < kLeast || seconds_since(start) < seconds))) {
    tensor.fill_(1);
    const Clock::time_point before = Clock::now();
    ranks.sum(tensor);
    times.push_back(seconds_since(before));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// A connection's first second is slower, which small sums, measured first, take for their own.
void warm_up(const RankGroup& ranks) { median_seconds(ranks, kLargest, 1); }

int run(int wanted, double seconds) {
  CommandRanks ranks(wanted);
  apply_runtime({.device = "cpu", .threads = 1});
  return ranks.run([&] {
    warm_up(ranks.group());
    nlohmann::ordered_json sums = nlohmann::ordered_json::array();
    for (int64_t bytes = kLargest; bytes >= kSmallest; bytes /= 4)
      sums.push_back({{"bytes", bytes}, {"seconds", median_seconds(ranks.group(), bytes, seconds)}});
    if (ranks.is_first())
      fmt::print("{}\n", nlohmann::ordered_json{{"ranks", ranks.group().size()}, {"sums", sums}}.dump());
    return 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  tune_allocator();
  remember_command_line(argc, argv);  // the other ranks are started by it
  try {
    if (argc != 3) throw ConfigError("usage: bench_rank_sums RANKS SECONDS");
    return run(std::stoi(argv[1]), std::stod(argv[2]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_rank_sums: {}\n", error.what());
    return 1;
  }
}
