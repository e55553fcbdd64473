// defines: lane_sum(), a sum in several partial sums.
#pragma once

#include <array>
#include <cstdint>

namespace basin {

/// sum_i f(i), i in [0, n), in sixteen sums side by side, so that the compiler may use vector registers of
/// any width without reordering a single sum: the same bits on every machine.
template <class F>
double lane_sum(int64_t n, const F& f) {
  constexpr int64_t kLanes = 16;
  std::array<double, kLanes> partial{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) partial[static_cast<size_t>(lane)] += f(i + lane);
  }
  double sum = 0;
  for (; i < n; ++i) sum += f(i);
  for (const double value : partial) sum += value;
  return sum;
}

}  // namespace basin
