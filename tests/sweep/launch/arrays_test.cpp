// Job arrays of a study: one for each stage, every run in one task, tasks long enough, within the largest array.
#include "sweep/launch/arrays.h"

#include <gtest/gtest.h>

#include <set>

#include "core/files.h"
#include "io/status_file.h"
#include "sweep/part.h"
#include "sweep/stage.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

const std::string kBase =
    "model = 'mlp'\nupdates = 40\n[data]\nset = 'synthetic'\ntrain_examples = 200\ntest_examples = 60\n"
    "[mlp]\nhidden = [8]\n";
const std::string kBranches =
    kBase +
    "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nseed = [1, 2, 3]\nbatch_size = [16, 64]\n"
    "branch.from = ['', 'batch_size = 16']\n";

struct Planned {
  explicit Planned(const std::string& text)
      : study(parse_study(text, "s.toml", {})),
        out(folder / "out"),
        costs(plan_sweep(study, out, {}).cells, true) {}
  std::vector<StageArray> arrays(double task_minutes, int64_t most_tasks = 1000, bool retry = false) const {
    return plan_arrays(study, out, costs, {most_tasks, task_minutes, 1, true, retry});
  }

  testing::TemporaryFolder folder;
  Study study;
  SweepPaths out;
  CostModel costs;
};

TEST(StageArrays, HaveATaskForEachRunWhereTasksMayBeShort) {
  const Planned planned(kBranches);
  const std::vector<StageArray> arrays = planned.arrays(0);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "sweep");
  EXPECT_EQ(arrays[1].name, "branches");
  EXPECT_EQ(arrays[0].runs, 6u);
  EXPECT_EQ(arrays[1].runs, 6u);
  for (const StageArray& array : arrays) {
    EXPECT_EQ(array.shards, 6);
    EXPECT_EQ(array.tasks, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
    EXPECT_GT(array.longest_task, 0);
    EXPECT_LE(array.longest_task, array.seconds);
  }
}

TEST(StageArrays, StayWithinTheLargestArrayAndBundleShortRuns) {
  const Planned planned(kBranches);
  EXPECT_EQ(planned.arrays(0, 4)[0].tasks.size(), 4u);
  const StageArray bundled = planned.arrays(30)[0];
  EXPECT_EQ(bundled.tasks, std::vector<int64_t>{1});
  EXPECT_DOUBLE_EQ(bundled.longest_task, bundled.seconds);
}

TEST(StageArrays, LeaveOutWhatIsDoneAndWhatCannotBeMade) {
  const Planned planned(kBranches);
  const std::vector<Stage> stages = plan_stages(planned.study, planned.out);
  const Cell& failed = stages[0].cells.front();
  const std::string folder = planned.out.run_folder(failed.run_id);
  make_folders(folder);
  RunStatus status;
  status.run_id = failed.run_id;
  status.status = RunState::failed;
  status.updated_utc = "2026-11-21T14:03:22Z";
  write_status(folder + "/status.json", status);
  size_t branches = 0;
  for (const Cell& cell : stages[1].cells) {
    const std::vector<std::string>& parents = cell.parents;
    branches += std::find(parents.begin(), parents.end(), failed.run_id) != parents.end();
  }
  const std::vector<StageArray> arrays = planned.arrays(0);
  EXPECT_EQ(arrays[0].runs, 5u);
  EXPECT_EQ(arrays[1].runs, 6 - branches);
  EXPECT_GT(branches, 0u);
  const std::vector<StageArray> again = planned.arrays(0, 1000, /*retry=*/true);
  EXPECT_EQ(again[0].runs, 6u);
  EXPECT_EQ(again[1].runs, 6u);
}

}  // namespace
}  // namespace basin
