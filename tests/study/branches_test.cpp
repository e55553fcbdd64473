// [branch] in a study file: which run is whose parent, what that does to names, and what is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "study/study.h"
#include "tests/study/study_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::study_message;
using testing::study_of;

const Cell& cell_where(const std::vector<Cell>& cells, int64_t seed, int64_t batch, bool is_branch) {
  for (const Cell& cell : cells) {
    const TrainOptions& train = cell.options.train;
    if (train.seed == seed && train.batch_size == batch && train.branch.exists() == is_branch) return cell;
  }
  throw std::runtime_error("no such cell");
}

const std::string kTop =
    "protocol = 'A-updates'\nupdates = 100\ncheckpoint_every = 10\nloss_levels = [1.5]\n";

TEST(Branches, NameTheRunOfTheirSeedAndOfTheirOtherAxes) {
  const std::vector<Cell> cells =
      expand(study_of(kTop + "[branch]\nat = 'u000010'\n[sweep]\nbatch_size = [32, 64]\nseed = [1, 2]\n"
                             "branch.from = ['', 'protocol = \"A-updates\"', 'batch_size = 32']\n"));
  // The two branches with batch size 32 are one run.
  ASSERT_EQ(cells.size(), 2u * (2 + 3));
  for (const int64_t seed : {1, 2}) {
    const Cell& parent = cell_where(cells, seed, 32, false);
    EXPECT_THAT(parent.parents, IsEmpty());
    EXPECT_EQ(parent.options.train.branch, BranchOptions{})
        << "branch.at is nothing of a run without a parent";
    const Cell& child = cell_where(cells, seed, 32, true);
    EXPECT_THAT(child.parents, ElementsAre(parent.run_id));
    EXPECT_EQ(child.options.train.branch.from, parent.run_id);
    EXPECT_EQ(child.run_id, child.options.run_id());
    std::set<std::string> parents;
    for (const Cell& cell : cells)
      if (cell.options.train.seed == seed && cell.options.train.batch_size == 64 &&
          cell.options.train.branch.exists())
        parents.insert(cell.parents.at(0));
    EXPECT_EQ(parents, (std::set{parent.run_id, cell_where(cells, seed, 64, false).run_id}));
  }
}

TEST(Branches, OfTheSameSettingHaveOneConfigIdAndRunIdsOfTheirOwn) {
  const std::vector<Cell> cells = expand(study_of(
      kTop +
      "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nseed = [1, 2]\nbranch.from = ['', 'batch_size = 256']\n"));
  ASSERT_EQ(cells.size(), 4u);
  const Cell &one = cell_where(cells, 1, 256, true), &two = cell_where(cells, 2, 256, true);
  EXPECT_NE(one.run_id, two.run_id);
  EXPECT_EQ(one.options.config_id(), two.options.config_id());
  EXPECT_NE(one.options.config_id(), cell_where(cells, 1, 256, false).options.config_id());
}

TEST(Branches, LeaveRunsWithoutThemTheirNames) {
  RunOptions plain;
  const std::string id = plain.run_id();
  plain.train.branch.at = "end";
  EXPECT_NE(plain.run_id(), id);
  plain.train.branch = {};
  plain.train.branch.path = "elsewhere.h5";  // where a file lies is no part of what is computed
  EXPECT_EQ(plain.run_id(), id);
}

TEST(Branches, OfAFactorAreThoseOfTheirRate) {
  const std::string rates = "[[sweep.set]]\nset = { learning_rate = [0.1, 0.4] }\n";
  const std::vector<Cell> cells =
      expand(study_of(kTop +
                      "[branch]\nat = 'u000010'\n[sweep]\nbranch.rate_factor = [1.0, 0.5]\n"
                      "branch.from = ['', 'batch_size = 256']\n" +
                      rates));
  ASSERT_EQ(cells.size(), 2u + 4u);
  std::map<std::string, double> parents;
  for (const Cell& cell : cells)
    if (cell.parents.empty()) parents[cell.run_id] = cell.options.train.learning_rate;
  std::set<std::pair<double, double>> found;  // the parent's rate, and the branch's over it
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.options.train.branch.rate_factor, 1);
    if (cell.parents.empty()) continue;
    const double parent = parents.at(cell.parents[0]);
    found.insert({parent, cell.options.train.learning_rate / parent});
    const std::vector<Cell> again = expand(study_of(cell.options.resolved()));
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].run_id, cell.run_id) << "the factor is not taken twice";
  }
  EXPECT_EQ(found, (std::set<std::pair<double, double>>{{0.1, 1}, {0.1, 0.5}, {0.4, 1}, {0.4, 0.5}}));
  EXPECT_THAT(study_message(kTop + "[branch]\nat = 'end'\nfrom = 'batch_size = 32'\nrate_factor = 0.0\n"),
              HasSubstr("rate_factor"));
}

TEST(Branches, ConfigTomlReadsBackAsTheSameRun) {
  const std::vector<Cell> cells = expand(study_of(
      kTop + "[branch]\nat = 'loss-1.5'\nanneal = 0.2\n[sweep]\nbranch.from = ['', 'batch_size = 256']\n"));
  const Cell& child = cell_where(cells, 1, 256, true);
  const std::vector<Cell> again = expand(study_of(child.options.resolved()));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].run_id, child.run_id);
  EXPECT_EQ(again[0].parents, child.parents);
}

const std::string kChain =
    "[branch]\nat = 'u000010'\n[sweep]\nbranch.updates = [20, 30, 40]\n"
    "branch.from = ['', 'batch_size = 256', 'branch.updates = 20, branch.from = \"batch_size = 256\"']\n"
    "[[sweep.skip]]\nwhen = { branch.from = 'batch_size = 256', branch.updates = [30, 40] }\n"
    "[[sweep.skip]]\nwhen = { branch.from = 'branch.updates = 20, branch.from = \"batch_size = 256\"', "
    "branch.updates = [20, 40] }\n"
    "[[sweep.set]]\nwhen = { branch.updates = 30 }\nset = { branch.at = 'end' }\n";

TEST(Branches, OfBranchesNameThemByTheirOwnKeys) {
  const std::vector<Cell> cells = expand(study_of(kTop + kChain));
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_THAT(cells[1].parents, ElementsAre(cells[0].run_id));
  EXPECT_THAT(cells[2].parents, ElementsAre(cells[1].run_id));
  EXPECT_EQ(cells[2].options.train.branch.at, "end");
}

TEST(Branches, ThatNameNoRunSeveralOrThemselvesAreOneLine) {
  const std::string branch = kTop + "[branch]\nat = 'end'\nupdates = 5\n";
  EXPECT_THAT(study_message(branch + "from = 'batch_size = 99'\n"),
              HasSubstr("branch.from = \"batch_size = 99\" names no runs with seed 1"));
  EXPECT_THAT(
      study_message(
          branch +
          "[sweep]\nlearning_rate = [0.1, 0.2]\nbranch.from = ['', 'batch_size = 256']\n"
          "[[sweep.set]]\nwhen = { branch.from = 'batch_size = 256' }\nset = { learning_rate = 0.3 }\n"),
      AllOf(HasSubstr("names 2 runs with seed 1: "), HasSubstr("rate 0.1 seed 1; ")));
  EXPECT_THAT(study_message(branch + "from = 'branch.updates = 5'\n"),
              HasSubstr("branch.from names this run itself"));
  EXPECT_THAT(
      study_message(
          kTop +
          "[branch]\nat = 'end'\nfrom = 'branch.updates = 2'\n[sweep]\nbranch.updates = [1, 2]\n"
          "[[sweep.set]]\nwhen = { branch.updates = 2 }\nset = { branch.from = 'branch.updates = 1' }\n"),
      AllOf(HasSubstr("branch.from goes in a circle: "), HasSubstr("branches from the first")));
  EXPECT_THAT(study_message(branch + "from = 'batch = 32'\n"), HasSubstr("unknown key \"batch\""));
  EXPECT_THAT(study_message(branch + "from = 'batch_size = '\n"), HasSubstr("branch.from"));
  EXPECT_THAT(study_message(branch), HasSubstr("[branch] needs branch.from"));
  EXPECT_THAT(study_message(kTop, {"branch.updates=4"}), HasSubstr("[branch] needs branch.from"));
}

TEST(Branches, OfAParentThatDoesntFitAreOneLine) {
  const auto with = [](const std::string& at, const std::string& rule) {
    return study_message(kTop + "[branch]\nat = '" + at +
                         "'\n[sweep]\nbranch.from = ['', 'batch_size = 256']\n[[sweep.set]]\nwhen = { "
                         "branch.from = 'batch_size = "
                         "256' }\nset = { branch.updates = 5" +
                         rule + " }\n");
  };
  EXPECT_EQ(with("u000010", ""), "no error");
  EXPECT_EQ(with("loss-1.5", ""), "no error");
  EXPECT_EQ(with("start", ""), "no error");
  EXPECT_THAT(with("u000015", ""),
              HasSubstr("keeps no checkpoint branch.at = \"u000015\"; it keeps: start, end, every 10. "
                        "update, loss-1.5"));
  EXPECT_EQ(with("u000100", ""), "no error");
  EXPECT_THAT(with("u000110", ""), HasSubstr("keeps no checkpoint"));
  EXPECT_THAT(with("loss-1.2", ""), HasSubstr("keeps no checkpoint"));
  EXPECT_THAT(with("latest", ""), HasSubstr("keeps no checkpoint"));
  EXPECT_THAT(with("", ""), HasSubstr("branch.from needs branch.at"));
  EXPECT_THAT(with("end", ", model = 'mlp'"), HasSubstr("another network: small_cnn there, mlp here"));
  EXPECT_THAT(with("end", ", dtype = 'float64'"), HasSubstr("another dtype: float32 there, float64 here"));
  EXPECT_THAT(with("end", ", data.set = 'synthetic'"), HasSubstr("another data set"));
  EXPECT_THAT(with("end", ", optimizer = 'lamb'"),
              HasSubstr("branch.optimizer = \"kept\" must be \"reset\""));
  EXPECT_EQ(with("end", ", optimizer = 'lamb', branch.optimizer = 'reset'"), "no error");
  EXPECT_THAT(with("end", ", branch.anneal = 0.2"), HasSubstr("exclude each other"));
}

TEST(Branches, AreNotTuned) {
  EXPECT_THAT(
      testing::message_of([] {
        expand_tuning(study_of(
            kTop +
            "learning_rate = 'tuned'\n[branch]\nat = 'end'\nupdates = 5\n[data]\nvalidation = 0.1\n"
            "[sweep]\nbranch.from = ['', 'batch_size = 256']\n[[tune.range]]\nkey = 'learning_rate'\n"
            "low = 0.01\nhigh = 1\n"));
      }),
      HasSubstr(
          "branches from another run, and such runs aren't tuned: give it a learning_rate in [[sweep.set]], "
          "or take the rates from a selection (sweep.selection)"));
}

TEST(Branches, OfAPathAreOneLineWhereItIsMissingOrForeign) {
  const testing::TemporaryFolder folder;
  const auto error_of = [](const std::string& path) -> std::string {
    try {
      expand(study_of("[branch]\nat = 'end'\nfrom = '" + path + "'\n"));
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of(folder / "none.h5"), HasSubstr("none.h5: missing"));
  write_file_atomically(folder / "notes.h5", "no checkpoint\n");
  EXPECT_THAT(error_of(folder / "notes.h5"), HasSubstr("notes.h5"));
}

}  // namespace
}  // namespace basin
