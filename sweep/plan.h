// defines: SweepPlan, the runs of a study and how each stands in OUT.
#pragma once

#include <string>
#include <vector>

#include "io/status_file.h"
#include "study/study.h"
#include "sweep/cost_model.h"
#include "sweep/folder.h"
#include "sweep/part.h"

namespace basin {

enum class Standing { left, done, failed };

Standing standing_of(const Cell& cell, const SweepPaths& out, bool with_probes);

/// What of a study is run.
struct PlanScope {
  bool probes = true;
  bool tuning_alone = false;  // not the runs with the chosen values
  StudyPart part = {};
};

struct SweepPlan {
  std::vector<Cell> cells;         // those that choose, then the others, each run once
  std::vector<Standing> standing;  // by cell; done: nothing left to train or to measure
  std::vector<RunStatus> status;   // by cell
  std::vector<bool> probed;        // by cell; those that choose are probed where they win
  size_t tuning = 0;               // cells that choose
  bool winners_known = true;       // false: the others have a candidate from the middle for the time being
  std::string budget;              // of the tuning, in words; empty without one

  size_t count(Standing wanted) const;
};

/// What is chosen already is read from the tuning runs in OUT, where all have ended. ConfigError for a part of a study that tunes
/// without its stage, and for a stage that depends on a choice that is not made yet.
SweepPlan plan_sweep(const Study& study, const SweepPaths& out, const PlanScope& scope);

/// Positions of the runs that are left and can be made: neither of a parent that failed nor with probes that did. With `retry` what
/// failed is made again.
std::vector<size_t> runs_to_come(const SweepPlan& plan, const SweepPaths& out, bool retry = false);

/// ConfigError or DataError in one line where the data of a run that is still to be made, or with `retry` of one that failed,
/// can't be loaded as its options say. Each set is read once.
void require_data(const SweepPlan& plan, bool retry);

/// A sentence where the probes of all these runs take longer than their training; else empty.
std::string probe_cost_warning(const SweepPlan& plan, const CostModel& costs);

/// Expected seconds of what is left, and with `retry` of what failed, by that many workers.
double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry);

}  // namespace basin
