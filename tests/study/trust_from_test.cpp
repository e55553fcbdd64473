// trust_from in a study file: which run's mean ratios an arm has, what that does to names, and what is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/study.h"
#include "study/trust_ratios.h"
#include "tests/study/study_text.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::study_message;
using testing::study_of;

const TrustArm& arm_of(const Cell& cell) { return *trust_arm(cell.options); }

const Cell& cell_where(const std::vector<Cell>& cells, int64_t seed, int64_t batch,
                       const std::string& trust) {
  for (const Cell& cell : cells) {
    const TrainOptions& train = cell.options.train;
    if (train.seed == seed && train.batch_size == batch && arm_of(cell).trust == trust) return cell;
  }
  throw std::runtime_error("no such cell");
}

const std::string kTop = "optimizer = 'lamb'\nprotocol = 'A-updates'\nupdates = 100\n";
const std::string kLive = "[lamb]\ntrust_from = 'lamb.trust = \"live\"'\n";

TEST(TrustFrom, NamesTheRunOfItsSeedAndOfItsOtherAxes) {
  const std::vector<Cell> cells = expand(study_of(
      kTop + kLive +
      "[sweep]\nbatch_size = [32, 64]\nseed = [1, 2]\nlamb.trust = ['live', 'frozen', 'frozen_mean']\n"));
  ASSERT_EQ(cells.size(), 2u * 2 * 3);
  for (const int64_t seed : {1, 2}) {
    for (const int64_t batch : {32, 64}) {
      const Cell& live = cell_where(cells, seed, batch, "live");
      EXPECT_THAT(live.parents, IsEmpty());
      EXPECT_EQ(arm_of(live).trust_from, "") << "a live arm reads no ratios";
      for (const char* trust : {"frozen", "frozen_mean"}) {
        const Cell& cell = cell_where(cells, seed, batch, trust);
        EXPECT_THAT(cell.parents, ElementsAre(live.run_id));
        EXPECT_EQ(arm_of(cell).trust_from, live.run_id);
        EXPECT_EQ(cell.run_id, cell.options.run_id());
      }
    }
  }
}

TEST(TrustFrom, CanNameARunOfAnotherBatchSize) {
  const std::vector<Cell> cells =
      expand(study_of(kTop + "[lamb]\ntrust_from = 'batch_size = 32, lamb.trust = \"live\"'\n[sweep]\n"
                             "batch_size = [32, 64]\nlamb.trust = ['live', 'frozen']\n"));
  const Cell& live = cell_where(cells, 1, 32, "live");
  EXPECT_THAT(cell_where(cells, 1, 64, "frozen").parents, ElementsAre(live.run_id));
  EXPECT_THAT(cell_where(cells, 1, 32, "frozen").parents, ElementsAre(live.run_id));
}

TEST(TrustFrom, HasOneConfigIdForAllSeedsAndRunIdsOfTheirOwn) {
  const std::vector<Cell> cells =
      expand(study_of(kTop + kLive + "[sweep]\nseed = [1, 2]\nlamb.trust = ['live', 'frozen']\n"));
  const Cell &one = cell_where(cells, 1, 256, "frozen"), &two = cell_where(cells, 2, 256, "frozen");
  EXPECT_NE(one.run_id, two.run_id);
  EXPECT_EQ(one.options.config_id(), two.options.config_id());
  EXPECT_NE(one.options.config_id(), cell_where(cells, 1, 256, "live").options.config_id());
}

// The ratios that a run found are in its config.toml, and no part of its name; those that a study gives are.
TEST(TrustFrom, ConfigTomlReadsBackAsTheSameRunWithAndWithoutTheRatios) {
  const Cell child = cell_where(expand(study_of(kTop + kLive + "[sweep]\nlamb.trust = ['live', 'frozen']\n")),
                                1, 256, "frozen");
  const Cell again = expand(study_of(child.options.resolved())).at(0);
  EXPECT_EQ(again.run_id, child.run_id);
  EXPECT_EQ(again.parents, child.parents);
  RunOptions filled = child.options;
  filled.table().set("lamb.trust_ratios", std::vector<std::string>{"fc.weight=0.5"}, "test");
  EXPECT_EQ(filled.run_id(), child.run_id);
  EXPECT_EQ(filled.config_id(), child.options.config_id());
  const Cell whole = expand(study_of(filled.resolved())).at(0);
  EXPECT_EQ(whole.run_id, child.run_id);
  EXPECT_THAT(whole.parents, IsEmpty()) << "it has what it needs";
  const std::string given = kTop + "[lamb]\ntrust = 'frozen'\ntrust_ratios = ['fc.weight=0.5']\n";
  EXPECT_EQ(expand(study_of(given)).at(0).run_id,
            expand(study_of(given + "trust_from = 'lamb.trust = \"live\"'\n")).at(0).run_id);
}

TEST(TrustFrom, AndABranchMayBothBeNeeded) {
  const std::vector<Cell> cells = expand(
      study_of(kTop + "[branch]\nat = 'end'\nupdates = 5\n" + kLive +
               "[sweep]\nlamb.trust = ['live', 'frozen']\nbranch.from = ['', 'lamb.trust = \"live\"']\n"
               "[[sweep.skip]]\nwhen = { branch.from = '', lamb.trust = 'frozen' }\n"));
  // A live run, its branch, and a branch with the branch's ratios frozen.
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_THAT(cells[1].parents, ElementsAre(cells[0].run_id));
  EXPECT_THAT(cells[2].parents, ElementsAre(cells[0].run_id, cells[1].run_id));
}

TEST(TrustFrom, ThatNamesNoRunSeveralOrItselfIsOneLine) {
  const std::string frozen = kTop + "[lamb]\ntrust = 'frozen'\ntrust_from = ";
  EXPECT_THAT(study_message(frozen + "'lamb.trust = \"live\"'\n"),
              HasSubstr("lamb.trust_from = \"lamb.trust = \\\"live\\\"\" names no runs with seed 1"));
  EXPECT_THAT(study_message(frozen + "'lamb.trust = \"frozen\"'\n"),
              HasSubstr("lamb.trust_from names this run itself"));
  EXPECT_THAT(study_message(kTop + "[lamb]\ntrust_from = 'batch_size = 256'\n[sweep]\n"
                                   "lamb.trust = ['live', 'mean', 'frozen']\n"),
              AllOf(HasSubstr("names 2 runs with seed 1: "), HasSubstr("lamb.trust=live")));
  EXPECT_THAT(
      study_message(kTop + "[sweep]\nlamb.trust = ['frozen', 'frozen_mean']\n"
                           "[[sweep.set]]\nwhen = { lamb.trust = 'frozen' }\n"
                           "set = { lamb.trust_from = 'lamb.trust = \"frozen_mean\"' }\n"
                           "[[sweep.set]]\nwhen = { lamb.trust = 'frozen_mean' }\n"
                           "set = { lamb.trust_from = 'lamb.trust = \"frozen\"' }\n"),
      AllOf(HasSubstr("lamb.trust_from goes in a circle: "), HasSubstr("has its ratios from the first")));
  EXPECT_THAT(study_message(frozen + "'batch = 32'\n"), HasSubstr("unknown key \"batch\""));
}

// A frozen arm whose ratios are those of a branch that begins from it.
TEST(TrustFrom, InACircleWithABranchIsOneLine) {
  EXPECT_THAT(
      study_message(
          kTop + "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nlamb.trust = ['live', 'frozen']\n"
                 "branch.from = ['', 'lamb.trust = \"frozen\"']\n"
                 "[[sweep.skip]]\nwhen = { branch.from = '', lamb.trust = 'live' }\n"
                 "[[sweep.skip]]\nwhen = { branch.from = 'lamb.trust = \"frozen\"', lamb.trust = 'frozen' }\n"
                 "[[sweep.set]]\nwhen = { lamb.trust = 'frozen' }\n"
                 "set = { lamb.trust_from = 'lamb.trust = \"live\", branch.from = \"lamb.trust = "
                 "\\\"frozen\\\"\"' }\n"),
      AllOf(HasSubstr(" goes in a circle: "), HasSubstr("branches from"), HasSubstr("has its ratios from")));
}

TEST(TrustFrom, OfARunThatDoesntFitIsOneLine) {
  const auto with = [](const std::string& rule) {
    return study_message(
        kTop + kLive +
        "[sweep]\nlamb.trust = ['live', 'frozen']\n[[sweep.set]]\nwhen = { lamb.trust = 'live' }\nset = { " +
        rule + " }\n");
  };
  EXPECT_EQ(with("epochs = 1.0"), "no error");
  EXPECT_THAT(with("model = 'mlp'"), HasSubstr("which has another network: mlp there, small_cnn here"));
  EXPECT_THAT(study_message(kTop + "[lamb]\ntrust = 'frozen'\ntrust_from = 'optimizer = \"sgd\"'\n[sweep]\n"
                                   "optimizer = ['sgd', 'lamb']\n"),
              HasSubstr("sgd has no trust ratios"));
}

TEST(TrustFrom, RunsAreNotTuned) {
  EXPECT_THAT(testing::message_of([] {
                expand_tuning(study_of(
                    kTop + "learning_rate = 'tuned'\n[data]\nvalidation = 0.1\n" + kLive +
                    "[sweep]\nlamb.trust = ['live', 'frozen']\n[[tune.range]]\nkey = 'learning_rate'\n"
                    "low = 0.01\nhigh = 1\n"));
              }),
              HasSubstr("such runs aren't tuned"));
}

}  // namespace
}  // namespace basin
