// defines: StaleBound, who may begin a step under stale-synchronous parallel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace basin {

/// Counts the steps that workers have done. A worker that has done c may begin the next one when the slowest has done at least c - s
/// (Ho et al., NeurIPS 2013, section 3). Who is gone is nobody's slowest.
class StaleBound {
 public:
  /// `bound`: s; below 0: none.
  StaleBound(int64_t workers, int64_t bound)
      : bound_(bound), clocks_(static_cast<size_t>(workers), 0), gone_(clocks_.size(), false) {}

  int64_t clock(int64_t worker) const { return clocks_[static_cast<size_t>(worker)]; }
  void set_clock(int64_t worker, int64_t clock) { clocks_[static_cast<size_t>(worker)] = clock; }
  bool may_begin(int64_t worker) const {
    if (gone_[static_cast<size_t>(worker)]) return false;
    return bound_ < 0 || clock(worker) - slowest() <= bound_;
  }
  void step_done(int64_t worker) { ++clocks_[static_cast<size_t>(worker)]; }
  void remove(int64_t worker) { gone_[static_cast<size_t>(worker)] = true; }
  int64_t left() const { return std::count(gone_.begin(), gone_.end(), false); }
  /// Steps that the worker has done more than the slowest.
  int64_t lead(int64_t worker) const { return clock(worker) - slowest(); }

 private:
  int64_t slowest() const {
    int64_t least = INT64_MAX;
    for (size_t k = 0; k < clocks_.size(); ++k)
      if (!gone_[k]) least = std::min(least, clocks_[k]);
    return least;
  }
  int64_t bound_;
  std::vector<int64_t> clocks_;
  std::vector<bool> gone_;
};

}  // namespace basin
