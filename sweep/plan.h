// defines: SweepPlan, the runs of a study and how each stands in OUT.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"
#include "sweep/cost_model.h"
#include "sweep/folder.h"

namespace basin {

enum class Standing { left, done, failed };

/// What of a study is run.
struct PlanScope {
  bool probes = true;
  bool tuning_alone = false;  // not the runs with the chosen values
};

struct SweepPlan {
  std::vector<Cell> cells;         // those that choose, then the others, each run once
  std::vector<Standing> standing;  // by cell; done: nothing left to train or to measure
  size_t tuning = 0;               // cells that choose
  bool winners_known = true;       // false: the others have a candidate from the middle for the time being
  std::string budget;              // of the tuning, in words; empty without one

  size_t count(Standing wanted) const;
};

/// What is chosen already is read from the tuning runs in OUT, where all have ended.
SweepPlan plan_sweep(const Study& study, const SweepPaths& out, const PlanScope& scope);

/// Expected seconds of what is left, and with `retry` of what failed, by that many workers.
double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry);

}  // namespace basin
