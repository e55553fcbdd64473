// defines: LaneSum and lane_sum(), a sum in several partial sums.
#pragma once

#include <array>
#include <cstdint>

namespace basin {

/// Sixteen sums side by side, so that the compiler may use vector registers of any width without reordering a single sum: the
/// same bits on every machine. What doesn't fill sixteen goes to the rest.
class LaneSum {
 public:
  static constexpr int64_t kLanes = 16;
  void add(int64_t lane, double value) { lanes_[static_cast<size_t>(lane)] += value; }
  void add_rest(double value) { rest_ += value; }
  double total() const {
    double sum = rest_;
    for (const double lane : lanes_) sum += lane;
    return sum;
  }

 private:
  std::array<double, kLanes> lanes_{};
  double rest_ = 0;
};

/// sum_i f(i), i in [0, n), as a LaneSum.
template <class F>
double lane_sum(int64_t n, const F& f) {
  LaneSum sum;
  int64_t i = 0;
  for (; i + LaneSum::kLanes <= n; i += LaneSum::kLanes) {
    for (int64_t lane = 0; lane < LaneSum::kLanes; ++lane) sum.add(lane, f(i + lane));
  }
  for (; i < n; ++i) sum.add_rest(f(i));
  return sum.total();
}

}  // namespace basin
