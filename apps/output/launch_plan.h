// defines: print() of what `basin sweep --launch` would submit, for --dry-run.
#pragma once

#include <cstdint>

#include "sweep/cost_model.h"
#include "sweep/launch/launch.h"
#include "sweep/plan.h"

namespace basin {

/// Files and size on the disk, core-hours by stage, and the scripts. A task has `cores`.
void print(const SlurmLaunch& launch, const SweepPlan& plan, const CostModel& costs, int64_t cores);

}  // namespace basin
