#include "sweep/launch/arrays.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sweep/part.h"
#include "sweep/stage.h"

namespace basin {
namespace {

int64_t shards_for(double seconds, size_t runs, const ArrayLimits& limits) {
  const int64_t rounds = (static_cast<int64_t>(runs) + limits.jobs - 1) / limits.jobs;
  const int64_t most = std::min(limits.most_tasks, rounds);
  const double worth = limits.task_minutes * 60 * static_cast<double>(limits.jobs);
  return worth > 0 ? std::clamp<int64_t>(static_cast<int64_t>(seconds / worth), 1, most) : most;
}

// Seconds of each of the stage's runs that is to be made; 0 for the others.
std::vector<double> work_left(const Stage& stage, const std::set<std::string>& to_come, const SweepPaths& out,
                              const CostModel& costs, bool probes) {
  std::vector<double> seconds;
  for (const Cell& cell : stage.cells) {
    // A tuning run that only lacks its probes gets them in the sweep. Stand-ins say nothing about what is done.
    const bool left = !stage.known || (to_come.count(cell.run_id) &&
                                       standing_of(cell, out, probes && !stage.tuning) != Standing::done);
    seconds.push_back(left ? costs.seconds(cell.run_id) : 0);
  }
  return seconds;
}

StageArray array_of(const Stage& stage, const std::vector<double>& left, const ArrayLimits& limits) {
  StageArray array;
  array.name = stage.name;
  array.runs = static_cast<size_t>(std::count_if(left.begin(), left.end(), [](double s) { return s > 0; }));
  if (array.runs == 0) return array;
  array.shards = shards_for(std::accumulate(left.begin(), left.end(), 0.0), array.runs, limits);
  const std::vector<int64_t> shard = shard_of_each(stage.cells, array.shards);
  std::map<int64_t, std::vector<double>> of_task;
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i] > 0) of_task[shard[i]].push_back(left[i]);
  for (int64_t task = 1; !stage.known && task <= array.shards; ++task)
    of_task[task];  // whoever will be in them
  for (auto& [task, seconds] : of_task) {
    std::sort(seconds.rbegin(), seconds.rend());
    const double length = makespan(seconds, limits.jobs);
    array.tasks.push_back(task);
    array.seconds += length;
    array.longest_task = std::max(array.longest_task, length);
  }
  return array;
}

}  // namespace

int64_t StageArray::minutes() const { return 10 + static_cast<int64_t>(std::ceil(1.5 * longest_task / 60)); }

std::vector<StageArray> plan_arrays(const Study& study, const SweepPaths& out, const CostModel& costs,
                                    const ArrayLimits& limits) {
  const SweepPlan plan = plan_sweep(study, out, {limits.probes});
  std::set<std::string> to_come;
  for (const size_t i : runs_to_come(plan, out, limits.retry)) to_come.insert(plan.cells[i].run_id);
  std::vector<StageArray> arrays;
  int64_t number = 0;
  for (const Stage& stage : plan_stages(study, out)) {
    StageArray array = array_of(stage, work_left(stage, to_come, out, costs, limits.probes), limits);
    array.stage = ++number;
    if (array.runs > 0) arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace basin
