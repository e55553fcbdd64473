// parallel.order in a study file: which run's order of arrivals a run makes again, what that does to names, and what is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "study/study.h"
#include "tests/study/study_text.h"
#include "tests/support/order_file.h"
#include "tests/support/temporary_folder.h"
#include "trainers/workers/stale_options.h"

namespace basin::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFiveUpdates = "protocol = 'A-updates'\nupdates = 5\n";
const std::string kTwoWorkers = "[parallel]\nmode = 'ssp'\nworkers = 2\n";

const StaleGradientOptions& workers_of(const Cell& cell) {
  return cell.options.train.hook<StaleGradientOptions>();
}

std::string text_of_order(const std::string& order) {
  return kFiveUpdates + kTwoWorkers + "delays = 'recorded'\norder = '" + order + "'\n";
}

Cell cell_of_order(const std::string& order) {
  const std::vector<Cell> cells = expand(study_of(text_of_order(order)));
  EXPECT_EQ(cells.size(), 1u);
  return cells.at(0);
}

TEST(RecordedOrders, AreOfTheRunOfTheirSeed) {
  const std::vector<Cell> cells =
      expand(study_of(kFiveUpdates + kTwoWorkers +
                      "[sweep]\nseed = [1, 2]\nparallel.delays = ['real', 'recorded']\n"
                      "[[sweep.set]]\nwhen = { parallel.delays = 'recorded' }\n"
                      "set = { parallel.order = 'parallel.delays = \"real\"' }\n"));
  ASSERT_EQ(cells.size(), 4u);
  std::map<int64_t, std::string> real;
  std::set<std::string> settings;
  for (const Cell& cell : cells)
    if (workers_of(cell).real()) real[cell.options.train.seed] = cell.run_id;
  ASSERT_EQ(real.size(), 2u);
  for (const Cell& cell : cells) {
    if (workers_of(cell).real()) {
      EXPECT_THAT(cell.parents, IsEmpty());
      continue;
    }
    const std::string& named = real.at(cell.options.train.seed);
    EXPECT_THAT(cell.parents, ElementsAre(named));
    EXPECT_EQ(workers_of(cell).order, named);
    EXPECT_EQ(cell.run_id, cell.options.run_id());
    settings.insert(cell.options.config_id());
    const std::vector<Cell> again = expand(study_of(cell.options.resolved()));
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].run_id, cell.run_id);
    EXPECT_THAT(again[0].parents, ElementsAre(named));
  }
  EXPECT_EQ(settings.size(), 1u) << "seeds of one setting";
}

// Other axes of [parallel] need to agree, and a path that was given before isn't looked at.
TEST(RecordedOrders, AreOfTheRunOfTheirOtherAxes) {
  const std::vector<Cell> cells =
      expand(study_of(kFiveUpdates + kTwoWorkers +
                      "order_path = 'elsewhere.h5'\n[sweep]\nparallel.bound = [0, 4]\n"
                      "parallel.delays = ['real', 'recorded']\n"
                      "[[sweep.set]]\nwhen = { parallel.delays = 'recorded' }\n"
                      "set = { parallel.order = 'parallel.delays = \"real\"' }\n"));
  ASSERT_EQ(cells.size(), 4u);
  std::map<std::string, int64_t> bounds;
  for (const Cell& cell : cells) bounds[cell.run_id] = workers_of(cell).bound;
  for (const Cell& cell : cells) {
    if (workers_of(cell).real()) continue;
    EXPECT_EQ(bounds.at(workers_of(cell).order), workers_of(cell).bound);
    EXPECT_EQ(workers_of(cell).order_path, "");
  }
}

// Not by where it lies.
TEST(RecordedOrders, OfAFileAreKnownByTheirArrivals) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  const Cell cell = cell_of_order(write_order(folder / "a.h5", kOrderByHand));
  EXPECT_THAT(workers_of(cell).order, HasSubstr("sha256:"));
  EXPECT_EQ(workers_of(cell).order_path, folder / "a.h5");
  EXPECT_EQ(workers_of(cell).order_setting, "cdef01234567");
  EXPECT_THAT(cell.parents, IsEmpty());
  write_order(folder / "run/run.h5", kOrderByHand);
  const Cell copy = cell_of_order(folder / "run");
  EXPECT_EQ(workers_of(copy).order_path, folder / "run/run.h5");
  EXPECT_EQ(copy.run_id, cell.run_id);
  const std::vector<Cell> again = expand(study_of(copy.options.resolved()));
  EXPECT_EQ(again.at(0).run_id, cell.run_id);

  std::vector<Arrival> shorter = kOrderByHand;
  shorter.pop_back();
  const Cell other = cell_of_order(write_order(folder / "a.h5", shorter));  // in the place of the first
  EXPECT_NE(other.run_id, cell.run_id);
  EXPECT_EQ(other.options.config_id(), cell.options.config_id()) << "of the same setting";
  const Cell elsewhere = cell_of_order(write_order(folder / "b.h5", kOrderByHand, "0123456789ab"));
  EXPECT_EQ(elsewhere.run_id, cell.run_id);
  EXPECT_NE(elsewhere.options.config_id(), cell.options.config_id()) << "of a run of another setting";
}

// What tables have of a setting is a mean over seeds.
TEST(RecordedOrders, OfOneSettingAndSeedAreNotTwoRuns) {
  const TemporaryFolder folder;
  std::vector<Arrival> shorter = kOrderByHand;
  shorter.pop_back();
  const auto both = [&](const std::string& setting_of_second, const std::string& more) {
    return study_of(kFiveUpdates + kTwoWorkers + "delays = 'recorded'\n[sweep]\n" + more +
                    "parallel.order = ['" + write_order(folder / "a.h5", kOrderByHand) + "', '" +
                    write_order(folder / "b.h5", shorter, setting_of_second) + "']\n");
  };
  EXPECT_THAT(message_of([&] { expand(both("cdef01234567", "")); }),
              HasSubstr("are one setting with one seed, for parallel.order names two runs of one setting: a "
                        "seed counts once in "
                        "each setting"));
  EXPECT_EQ(expand(both("0123456789ab", "seed = [1, 2]\n")).size(), 4u) << "of two settings";
}

TEST(RecordedOrders, ThatCantBeAreOneLine) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<IoError>([&] { expand(study_of(text_of_order(folder / "none.h5"))); }),
              HasSubstr("none.h5: missing: parallel.order names no run of a study and no run.h5"));
  const auto named = [&](const std::string& conditions, const std::string& axes) {
    return study_message(kFiveUpdates + kTwoWorkers +
                         "[sweep]\nparallel.delays = ['constant', 'recorded']\n" + axes +
                         "[[sweep.set]]\nwhen = { parallel.delays = 'recorded' }\n"
                         "set = { parallel.order = '" +
                         conditions + "' }\n");
  };
  EXPECT_THAT(named("parallel.delays = \"real\"", ""), HasSubstr("names no runs with seed 1"));
  EXPECT_THAT(
      named("parallel.mode = \"one\"",
            "[[sweep.set]]\nwhen = { parallel.delays = 'constant' }\nset = { parallel.mode = 'one' }\n"),
      HasSubstr("which has no workers: it has no order of arrivals"));
  EXPECT_THAT(
      named("parallel.delays = \"constant\"",
            "[[sweep.set]]\nwhen = { parallel.delays = 'constant' }\nset = { parallel.workers = 3 }\n"),
      HasSubstr("which has more workers: 3 there, 2 here"));
}

// Else the plain run would be taken for the other's.
TEST(RecordedOrders, NeedAModeThatHasWorkers) {
  for (const char* const delays : {"real", "recorded"})
    EXPECT_THAT(study_message(kFiveUpdates + "[parallel]\ndelays = '" + delays + "'\n"),
                HasSubstr(std::string("parallel.delays = \"") + delays + "\" needs parallel.mode = \"ssp\""));
  EXPECT_THAT(study_message(kFiveUpdates + "[parallel]\norder = '0123456789ab'\n"),
              HasSubstr("parallel.order = \"0123456789ab\" needs parallel.mode = \"ssp\""));
}

TEST(RecordedOrders, ArentTuned) {
  const TemporaryFolder folder;
  const Study study = study_of(text_of_order(write_order(folder / "a.h5", kOrderByHand)) +
                                   "[data]\nvalidation = 0.1\n[[tune.range]]\nkey = 'learning_rate'\n"
                                   "low = 0.01\nhigh = 1\n",
                               {"learning_rate=tuned"});
  EXPECT_THAT(
      message_of([&] { expand_tuning(study); }),
      HasSubstr(
          "makes the order again of another run, and such runs aren't tuned: give it a learning_rate in "
          "[[sweep.set]]"));
}

}  // namespace
}  // namespace basin::testing
