#include "apps/output/launch_plan.h"

#include "apps/output/status_text.h"
#include "core/messages.h"
#include "core/progress.h"

namespace basin {
namespace {

DiskUse disk_of(const SweepPlan& plan, const CostModel& costs) {
  DiskUse all;
  for (const Cell& cell : plan.cells) {
    const DiskUse use = costs.disk(cell.run_id);
    all.files += use.files;
    all.bytes += use.bytes;
  }
  return all;
}

}  // namespace

void print(const SlurmLaunch& launch, const SweepPlan& plan, const CostModel& costs, int64_t cores) {
  const std::vector<StageArray> arrays = launch.arrays(costs);
  if (arrays.empty()) {
    fmt::print("nothing to submit: no run is left\n");
    return;
  }
  const DiskUse disk = disk_of(plan, costs);
  fmt::print("all runs leave about {} and {}\n", counted(disk.files, "file"), format_bytes(disk.bytes));
  double hours = 0;
  for (const StageArray& array : arrays) {
    const double of_array = array.seconds * static_cast<double>(cores) / 3600;
    hours += of_array;
    fmt::print("stage {} ({}): {} in {}, about {} each at most, {:.1f} core-hours\n", array.stage, array.name,
               counted(array.runs, "run"), counted(array.tasks.size(), "task"),
               format_duration(array.longest_task), of_array);
  }
  fmt::print("{:.1f} core-hours by this machine's speed\n", hours);
  for (const StageArray& array : arrays)
    fmt::print("\n---- {}\n{}", launch.script_path(array),
               batch_script(launch.job_of(array, array.stage == arrays.front().stage ? "" : "JOB")));
}

}  // namespace basin
