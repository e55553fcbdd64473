// defines: Stage, runs of a study that can be made side by side; plan_stages().
#pragma once

#include <string>
#include <vector>

#include "runs/folder.h"
#include "study/study.h"

namespace basin {

/// Runs that need one another only across stages: once all of a stage have ended, all of the next can begin.
struct Stage {
  std::string name;     // "tuning, rung 1 of 3", "sweep", "branches", "branches of branches"
  bool tuning = false;  // its runs choose, and aren't probed
  bool known = true;    // false: stand-ins, until the tuning before it has ended; their number is right
  std::vector<Cell> cells;
};

/// The rungs of the tuning, then the runs that are branches of none, then the branches of those, and so on. A run that is in the tuning
/// and in the sweep is in both. What has been chosen is read from OUT.
std::vector<Stage> plan_stages(const Study& study, const SweepPaths& out);

}  // namespace basin
