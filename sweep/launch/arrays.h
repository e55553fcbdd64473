// defines: StageArray, the job array of a stage; plan_arrays().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/cost_model.h"
#include "sweep/plan.h"

namespace basin {

struct ArrayLimits {
  int64_t most_tasks = 1000;  // of an array
  double task_minutes = 30;   // that a task should have at least, so that it is worth its start
  int64_t jobs = 1;           // runs at once in a task
  bool probes = true, retry = false;
};

/// What is left of a stage, dealt out to the tasks of a job array.
struct StageArray {
  int64_t stage = 1;  // from 1
  std::string name;
  int64_t shards = 1;
  std::vector<int64_t> tasks;  // numbers of the shards that have something left
  size_t runs = 0;             // left
  double seconds = 0;          // of all tasks together
  double longest_task = 0;     // seconds

  /// Half as long again as the longest task is expected to take, and ten. A task that isn't done by then is requeued and goes on.
  int64_t minutes() const;
};

/// One for each stage that has something left that can be made. Stages whose runs aren't known yet have as many as they will have.
std::vector<StageArray> plan_arrays(const Study& study, const SweepPaths& out, const CostModel& costs,
                                    const ArrayLimits& limits);

}  // namespace basin
