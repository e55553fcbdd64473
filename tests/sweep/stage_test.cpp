// Stages of a study: rungs of the tuning, then generations of branches; every run once, parents in earlier stages.
#include "sweep/stage.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

const std::string kBase =
    "model = 'mlp'\nupdates = 40\n[data]\nset = 'synthetic'\nvalidation = 0.2\ntrain_examples = 200\n"
    "test_examples = 60\n[mlp]\nhidden = [8]\n";

std::vector<Stage> stages_of(const std::string& tables, const std::string& top = "") {
  const testing::TemporaryFolder folder;
  return plan_stages(parse_study(top + kBase + tables, "s.toml", {}), SweepPaths(folder / "out"));
}

TEST(Stages, AreOneWithoutBranchesAndTuning) {
  const std::vector<Stage> stages = stages_of("[sweep]\nseed = [1, 2, 3]\n");
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].name, "sweep");
  EXPECT_EQ(stages[0].cells.size(), 3u);
  EXPECT_TRUE(stages[0].known);
  EXPECT_FALSE(stages[0].tuning);
}

TEST(Stages, HaveParentsBeforeTheirBranches) {
  const std::string text =
      "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nseed = [1, 2]\nbatch_size = [16, 64]\n"
      "branch.from = ['', 'batch_size = 16']\n";
  const std::vector<Stage> stages = stages_of(text);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[1].name, "branches");
  std::map<std::string, size_t> stage;
  for (size_t i = 0; i < stages.size(); ++i)
    for (const Cell& cell : stages[i].cells) EXPECT_TRUE(stage.emplace(cell.run_id, i).second) << cell.label;
  EXPECT_EQ(stage.size(), 8u);
  for (const Stage& s : stages) {
    for (const Cell& cell : s.cells)
      for (const std::string& parent : cell.parents) EXPECT_LT(stage.at(parent), stage.at(cell.run_id));
  }
}

TEST(Stages, BeginWithTheRungsOfTheTuning) {
  const std::vector<Stage> stages = stages_of(
      "[tune]\ntrials = 4\nhalving = 2\nseeds = [9]\n[[tune.range]]\nkey = 'learning_rate'\nlow = "
      "0.001\nhigh = 0.1\n"
      "[sweep]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2]\n",
      "learning_rate = 'tuned'\n");
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].name, "tuning, rung 1 of 2");
  EXPECT_EQ(stages[1].name, "tuning, rung 2 of 2");
  EXPECT_EQ(stages[2].name, "sweep");
  EXPECT_EQ(stages[0].cells.size(), 8u);  // four trials of two optimisers
  EXPECT_EQ(stages[1].cells.size(), 4u);
  EXPECT_EQ(stages[2].cells.size(), 4u);
  EXPECT_TRUE(stages[0].tuning && stages[1].tuning && !stages[2].tuning);
  EXPECT_TRUE(stages[0].known);
  EXPECT_FALSE(stages[1].known);
  EXPECT_FALSE(stages[2].known);
}

}  // namespace
}  // namespace basin
