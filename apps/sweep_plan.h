// defines: SweepPlan, the runs of a study and how each stands in OUT.
#pragma once

#include <string>
#include <vector>

#include "apps/cost_model.h"
#include "apps/study.h"
#include "apps/sweep_folder.h"

namespace basin {

enum class Standing { left, done, failed };

struct SweepPlan {
  std::vector<Cell> cells;         // those that choose learning rates, then the others, each run once
  std::vector<Standing> standing;  // by cell; done: nothing left to train or to measure
  size_t tuning = 0;               // cells that choose
  bool rates_known = true;         // false: the others have the middle rate of their list, for the time being

  size_t count(Standing wanted) const;
};

/// What is chosen already is read from the tuning runs in OUT, where all have ended.
SweepPlan plan_sweep(const Study& study, const SweepPaths& out, bool with_probes);

/// Expected seconds of what is left, and with `retry` of what failed, by that many workers.
double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry);

}  // namespace basin
