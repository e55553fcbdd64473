// defines: expected_point(), where a branch is expected to leave its parent; sum_over_updates().
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "study/run_options.h"
#include "trainers/branch.h"

namespace basin {

/// value(batch size) summed over `updates` updates from `position` of the schedule on; beyond its end the last size goes on.
double sum_over_updates(const BatchSchedule& batches, int64_t position, int64_t updates,
                        const std::function<double(int64_t)>& value);

/// What a run is expected to do: `updates` of its own from `from` on.
struct ExpectedRun {
  const RunOptions* options = nullptr;
  BranchPoint from;  // of a run that is no branch all 0
  int64_t updates = 0;
  int64_t train_examples = 0;
};

/// The counters of the parent at its checkpoint `label`: of "u000400" after 400 updates; of "start" where it began; of "end"
/// where it is expected to end, at its last update but one under protocol B, which may end earlier; of a loss level, which nobody
/// knows yet, half-way.
BranchPoint expected_point(const ExpectedRun& parent, const std::string& label);

}  // namespace basin
