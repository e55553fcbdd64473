// defines: look_at(), how a sweep stands by what its runs say in their folders; SweepLook, RunAtWork.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/observer.h"
#include "sweep/plan.h"

namespace basin {

/// A run that a worker is at, on this host or another; one that was killed on another stays here.
struct RunAtWork {
  std::string run_id, host;
  int64_t pid = 0;
  double silent_seconds = 0;  // since its last word, by this host's clock; NaN: unknown
  WorkerLine line;
};

struct SweepLook {
  SweepPlan plan;
  std::vector<RunAtWork> at_work;
  std::vector<std::string> failures;  // a line for each run that failed, or whose probes did
  size_t to_come = 0;   // runs that can still end: neither done, nor failed, nor in need of what failed
  size_t lost = 0;      // runs that need what failed
  size_t unprobed = 0;  // runs that are trained and lack nothing but probes
  size_t killed = 0;    // runs to come whose process was killed on this host, training or probing

  /// For a SweepObserver. No time left.
  SweepState state() const;
};

/// Reads the small files of every run that isn't done and takes no lock, so it disturbs nobody. Seconds for 10,000 runs.
SweepLook look_at(const Study& study, const SweepPaths& out, const PlanScope& scope);

}  // namespace basin
