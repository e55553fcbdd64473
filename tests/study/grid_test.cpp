// Study files: the grid, the order of rules, skipping, and what is refused with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "study/compare.h"
#include "study/contrast_cells.h"
#include "study/study.h"
#include "tests/study/study_text.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::study_message;
using testing::study_of;

// "sgd 32 1" for each cell: optimiser, batch size, seed.
std::vector<std::string> summary(const std::vector<Cell>& cells) {
  std::vector<std::string> lines;
  for (const Cell& cell : cells) {
    const RunOptions& o = cell.options;
    lines.push_back(fmt::format("{} {} {}", o.optimizer, o.train.batch_size, o.train.seed));
  }
  return lines;
}

std::vector<double> rates(const std::vector<Cell>& cells) {
  std::vector<double> values;
  for (const Cell& cell : cells) values.push_back(cell.options.train.learning_rate);
  return values;
}

TEST(StudyGrid, IsTheProductOfItsAxesTheFirstSlowest) {
  const Study study =
      study_of("[sweep]\noptimizer = ['sgd', 'lars']\nbatch_size = [32, 64]\nseed = [1, 2]\n");
  EXPECT_THAT(summary(expand(study)), ElementsAre("sgd 32 1", "sgd 32 2", "sgd 64 1", "sgd 64 2", "lars 32 1",
                                                  "lars 32 2", "lars 64 1", "lars 64 2"));
}

TEST(StudyGrid, WithoutSweepIsTheBaseAlone) {
  EXPECT_THAT(summary(expand(study_of("optimizer = 'lamb'\nbatch_size = 7\nseed = 3\n"))),
              ElementsAre("lamb 7 3"));
}

TEST(StudyGrid, SweepsDottedKeys) {
  const std::vector<Cell> cells = expand(study_of("[sweep]\nsgd.momentum = [0.0, 0.5]\n"));
  ASSERT_EQ(cells.size(), 2u);
  RunOptions second = cells[1].options;
  EXPECT_EQ(second.table().at("sgd.momentum").get(), OptionValue(0.5));
  EXPECT_NE(cells[0].run_id, cells[1].run_id);
  EXPECT_THAT(cells[1].label, HasSubstr("sgd.momentum=0.5"));
}

TEST(StudyGrid, LaterRulesWinAndConditionsTakeLists) {
  const Study study = study_of(
      "learning_rate = 0.1\n"
      "[sweep]\noptimizer = ['sgd', 'lamb']\nbatch_size = [32, 64, 128]\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.01, warmup = 0.2 }\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lamb', batch_size = [64, 128] }\nset = { learning_rate = 0.02 }\n"
      "[[sweep.set]]\nwhen = { batch_size = 128 }\nset = { learning_rate = 0.5 }\n");
  const std::vector<Cell> cells = expand(study);
  EXPECT_THAT(rates(cells), ElementsAre(0.1, 0.1, 0.5, 0.01, 0.02, 0.5));
  EXPECT_EQ(cells[0].options.schedule.warmup, 0.05);
  EXPECT_EQ(cells[4].options.schedule.warmup, 0.2);
}

TEST(StudyGrid, ARuleSeesWhatAnEarlierOneSet) {
  const Study study = study_of(
      "[sweep]\nbatch_size = [32, 64]\n"
      "[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { schedule = 'constant' }\n"
      "[[sweep.set]]\nwhen = { schedule = 'constant' }\nset = { epochs = 3 }\n");
  const std::vector<Cell> cells = expand(study);
  EXPECT_EQ(cells[0].options.train.epochs, TrainOptions{}.epochs);
  EXPECT_EQ(cells[1].options.train.epochs, 3);
}

TEST(StudyGrid, SkipsAndNamesEachRunOnce) {
  const Study study = study_of(
      "[sweep]\nbatch_size = [32, 64, 32]\nseed = [1, 2, 3]\n"
      "[[sweep.skip]]\nwhen = { batch_size = 64, seed = [2, 3] }\n");
  EXPECT_THAT(summary(expand(study)), ElementsAre("sgd 32 1", "sgd 32 2", "sgd 32 3", "sgd 64 1"));
  EXPECT_THAT(study_message("[sweep]\nseed = [1]\n[[sweep.skip]]\nwhen = { seed = 1 }\n"),
              HasSubstr("no runs"));
}

TEST(StudyGrid, ProbesCanDependOnTheCell) {
  const Study study = study_of(
      "[probes]\nrun = ['noise_scale']\n[sweep]\nprotocol = ['A-epochs', 'B']\n"
      "[[sweep.set]]\nwhen = { protocol = 'A-epochs' }\nset = { probes.run = [] }\n");
  const std::vector<Cell> cells = expand(study);
  EXPECT_THAT(cells[0].options.probes.run, IsEmpty());
  EXPECT_THAT(cells[1].options.probes.run, ElementsAre("noise_scale"));
}

TEST(StudyGrid, ExpectationsAreByRule) {
  const Study study = study_of(
      "protocol = 'B'\n[sweep]\nbatch_size = [32, 64]\n"
      "[[sweep.expect]]\nwhen = { batch_size = 64 }\ngradients = 5000\n");
  const std::vector<Cell> cells = expand(study);
  EXPECT_EQ(cells[0].expected_gradients, 0);
  EXPECT_EQ(cells[1].expected_gradients, 5000);
}

TEST(StudyGrid, CommandLineReplacesAxesAndWinsOverRules) {
  const std::string text =
      "[sweep]\nbatch_size = [32, 64]\nseed = [1, 2]\n"
      "[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { learning_rate = 0.7, epochs = 2 }\n";
  const Study study =
      study_of(text, {"seed=5", "batch_size=[64, 128]", "learning_rate=0.25", "sgd.momentum=0.5"});
  EXPECT_THAT(summary(expand(study)), ElementsAre("sgd 64 5", "sgd 128 5"));
  EXPECT_THAT(rates(expand(study)), ElementsAre(0.25, 0.25));
  EXPECT_EQ(expand(study)[0].options.train.epochs, 2);
  // The frozen text alone gives the same study.
  EXPECT_EQ(fingerprints(study_of(study.text)), fingerprints(study));
  EXPECT_NE(fingerprints(study_of(text)), fingerprints(study));
}

TEST(StudyGrid, FingerprintsIgnoreCommentsAndExecution) {
  const std::string text = "[sweep]\nseed = [1, 2]\n";
  const auto ours = fingerprints(study_of(text));
  EXPECT_EQ(ours, fingerprints(study_of("# a word\n[runtime]\nthreads = 7\n" + text)));
  EXPECT_EQ(ours, fingerprints(study_of(text, {"runtime.threads=3"})));
  EXPECT_EQ(ours, fingerprints(
                      study_of("[probes]\nmicro_batch = 7\ngraph_memory = 0\nfold_norm = false\n" + text)));
  EXPECT_NE(ours, fingerprints(study_of("[probes]\nsubset = 7\n" + text)));
  EXPECT_NE(ours, fingerprints(study_of("epochs = 3\n" + text)));
  EXPECT_NE(ours, fingerprints(study_of("[probes]\nrun = ['noise_scale']\n" + text)));
}

TEST(StudyGrid, TheFirstDifferenceNamesRunKeyAndBothValues) {
  const std::string text = "[sweep]\nseed = [1, 2]\n";
  const Study here = study_of(text);
  EXPECT_THAT(first_difference(study_of("epochs = 3\n" + text), here),
              HasSubstr(" seed 1) has epochs = 3.0 there, 10.0 here"));
  EXPECT_THAT(first_difference(study_of("[probes]\nsubset = 7\n" + text), here),
              HasSubstr(" seed 1) has probes.subset = 7 there, 1000 here"));
  EXPECT_THAT(first_difference(study_of("[sweep]\nseed = [1, 3]\n"), here),
              HasSubstr(" seed 3) has seed = 3 there, 2 here"));
  EXPECT_THAT(first_difference(study_of("[sweep]\nseed = [2, 1, 3]\n"), here),
              HasSubstr(" seed 3) of it is not in this study"));
  EXPECT_THAT(first_difference(study_of("[sweep]\nseed = [1]\n"), here), HasSubstr(" seed 2) is not in it"));
  const std::string chosen = "learning_rate = [0.1, 0.2]\nselect = 'validation_loss'\nselect_seeds = ";
  EXPECT_EQ(first_difference(study_of(text + chosen + "[5]\n"), study_of(text + chosen + "[6]\n")),
            "selection seeds [5] there, selection seeds [6] here");
}

TEST(StudyGrid, AListOfRatesIsAnAxis) {
  const Study study = study_of(
      "[sweep]\nlearning_rate = [0.1, 0.2]\noptimizer = ['sgd', 'lamb']\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = [0.01, 0.02, 0.03] }\n");
  EXPECT_THAT(rates(expand(study)), ElementsAre(0.1, 0.2, 0.01, 0.02, 0.03));
  EXPECT_THAT(expand_tuning(study), IsEmpty());
}

constexpr const char* kTuned =
    "[sweep]\nlearning_rate = [0.1, 0.2]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2, 3]\nselect = "
    "'validation_loss'\n"
    "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.01 }\n";

TEST(StudySelection, TunesEachGroupWithSeveralRatesAtTheSelectionSeeds) {
  const Study study = study_of(kTuned);
  const std::vector<Cell> tuning = expand_tuning(study);
  EXPECT_THAT(summary(tuning),
              ElementsAre("sgd 256 1", "sgd 256 1"));  // lamb has one rate: nothing to choose
  EXPECT_THAT(rates(tuning), ElementsAre(0.1, 0.2));
  EXPECT_EQ(tuning[0].options.data.validation, 0.1);
  const std::vector<Cell> final_cells = expand(study, {{"optimizer=sgd", {{"learning_rate", 0.2}}}});
  EXPECT_THAT(rates(final_cells), ElementsAre(0.2, 0.2, 0.2, 0.01, 0.01, 0.01));
  EXPECT_EQ(final_cells[0].run_id, tuning[1].run_id);  // not trained twice
  EXPECT_EQ(final_cells[0].options.data.validation, 0.1);
}

TEST(StudySelection, TakesOtherSeedsToChooseBy) {
  std::string text = kTuned;
  text.insert(text.find("select ="), "select_seeds = [11, 12]\n");
  EXPECT_THAT(summary(expand_tuning(study_of(text))),
              ElementsAre("sgd 256 11", "sgd 256 11", "sgd 256 12", "sgd 256 12"));
}

TEST(StudySelection, RefusesWhatItCannotChooseFrom) {
  EXPECT_THAT(study_message("data.validation = 0.0\n" + std::string(kTuned)),
              HasSubstr("s.toml:6: sweep.select needs"));
  EXPECT_THAT(study_message("[sweep]\nselect = 'test_loss'\n"), HasSubstr("s.toml:2: sweep.select"));
  EXPECT_THAT(study_message("[sweep]\nselect_seeds = [1]\n"),
              HasSubstr("s.toml:2: sweep.select_seeds needs"));
  EXPECT_THROW(expand_tuning(study_of("[sweep]\nselect = 'validation_loss'\n")), ConfigError);
}

TEST(StudyFairness, WarnsOfOneRateForEachOptimiserAndOfOneForAll) {
  const auto warnings = [](const std::string& text) { return fairness_warnings(expand(study_of(text))); };
  EXPECT_THAT(warnings("[sweep]\nbatch_size = [32, 64]\n"),
              ElementsAre(HasSubstr("sgd has the same learning rate, 0.1, at 2 batch sizes")));
  EXPECT_THAT(warnings("[sweep]\noptimizer = ['sgd', 'lamb']\n"),
              ElementsAre(HasSubstr("the learning rate is the same for all 2 optimisers, 0.1")));
  EXPECT_THAT(warnings("[sweep]\nseed = [1, 2]\n"), IsEmpty());
  EXPECT_THAT(warnings("scaling_rule = 'sqrt'\n[sweep]\nbatch_size = [32, 64]\n"), IsEmpty());
  EXPECT_THAT(warnings("[sweep]\nbatch_size = [32, 64]\n[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { "
                       "learning_rate = 0.2 }\n"),
              IsEmpty());
  // Each optimiser has a rate of its own, and one of them the same at every batch size.
  EXPECT_THAT(
      warnings(
          "[sweep]\noptimizer = ['sgd', 'lamb']\nbatch_size = [32, 64]\n"
          "[[sweep.set]]\nwhen = { optimizer = 'lamb', batch_size = 32 }\nset = { learning_rate = 0.01 }\n"
          "[[sweep.set]]\nwhen = { optimizer = 'lamb', batch_size = 64 }\nset = { learning_rate = 0.02 }\n"),
      ElementsAre(HasSubstr("sgd has the same learning rate, 0.1, at 2 batch sizes")));
}

struct BadStudy {
  const char *name, *text, *message;
};
void PrintTo(const BadStudy& bad, std::ostream* out) { *out << bad.name; }

class StudyErrors : public ::testing::TestWithParam<BadStudy> {};

TEST_P(StudyErrors, NameFileLineAndReason) {
  EXPECT_THAT(study_message(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Study, StudyErrors,
    ::testing::Values(
        BadStudy{"unknown_base_key", "\nbatchsize = 3\n", "s.toml:2: unknown key \"batchsize\""},
        BadStudy{"unknown_axis", "[sweep]\nbatch_sizes = [3]\n", "s.toml:2: unknown key \"batch_sizes\""},
        BadStudy{"batch_zero", "[sweep]\nbatch_size = [32, 0]\n",
                 "s.toml:2: batch_size = 0 violates batch_size >= 1"},
        BadStudy{"batch_negative", "batch_size = -4\n", "s.toml:1: batch_size = -4 violates batch_size >= 1"},
        BadStudy{"wrong_type", "[sweep]\nseed = ['one']\n", "s.toml:2: seed = \"one\" should be"},
        BadStudy{"empty_axis", "[sweep]\nseed = []\n", "s.toml:2: seed = [] leaves nothing to run"},
        BadStudy{"list_option", "[sweep]\nloss_levels = [1.0, 2.0]\n",
                 "s.toml:2: loss_levels is itself a list"},
        BadStudy{"execution_axis", "[sweep]\nruntime.threads = [1, 2]\n",
                 "s.toml:2: runtime.threads does not tell"},
        BadStudy{"rule_unknown_key", "[sweep]\nseed = [1]\n[[sweep.set]]\nset = { lerning_rate = 1.0 }\n",
                 "s.toml:4: unknown key \"lerning_rate\""},
        BadStudy{"rule_range", "[[sweep.set]]\nset = { final_factor = 7.0 }\n", "s.toml:2: final_factor = 7"},
        BadStudy{"rule_extra", "[[sweep.set]]\nif = 1\nset = { epochs = 1 }\n",
                 "s.toml:2: unknown key \"if\" in a rule"},
        BadStudy{"rule_without_set", "[sweep]\nseed = [1]\n[[sweep.set]]\nwhen = { seed = 1 }\n",
                 "s.toml:3: the rule has no"},
        BadStudy{"skip_all", "[[sweep.skip]]\n", "s.toml:1: the rule has no `when`"},
        BadStudy{"rule_sets_axis", "[sweep]\nseed = [1]\n[[sweep.set]]\nset = { seed = 3 }\n",
                 "s.toml:4: seed is swept"},
        BadStudy{
            "never_holds", "[sweep]\nbatch_size = [32, 64]\n[[sweep.skip]]\nwhen = { batch_size = 128 }\n",
            "s.toml:4: the rule can never hold: batch_size = 128 is not among the study's values (32, 64)"},
        BadStudy{"never_holds_base", "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { epochs = 1 }\n",
                 "s.toml:2: the rule can never hold: optimizer = \"lamb\""},
        BadStudy{
            "rate_by_seed",
            "[sweep]\nseed = [1, 2]\n[[sweep.set]]\nwhen = { seed = 2 }\nset = { learning_rate = 1.0 }\n",
            "s.toml:5: a learning rate can't depend on seed"},
        BadStudy{"unknown_rules", "[[sweep.sett]]\nset = { epochs = 1 }\n",
                 "s.toml:1: unknown table [[sweep.sett]]"},
        BadStudy{"not_toml", "a = = 1\n", "s.toml:1:"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(StudyErrors, ComeFromTheCommandLineToo) {
  EXPECT_THAT(study_message("", {"nonsense=1"}), HasSubstr("--set: unknown key \"nonsense\""));
  EXPECT_THAT(study_message("", {"batch_size=0"}), HasSubstr("--set: batch_size = 0 violates"));
  EXPECT_THAT(study_message("", {"batch_size"}), HasSubstr("expected key=value"));
}

constexpr const char* kArms =
    "warmup = 0.05\n[sweep]\noptimizer = ['sgd', 'lamb']\nbatch_size = [32, 2048]\nseed = [1, 2]\n"
    "[[sweep.arm]]\nwhen = { optimizer = 'sgd', batch_size = 2048 }\nset = { noise.batch = [32, 256] }\n"
    "[[sweep.arm]]\nwhen = { batch_size = 2048 }\nset = { warmup = 0.0 }\n"
    "[[sweep.set]]\nwhen = { noise.batch = 32 }\nset = { learning_rate = 0.5 }\n";

// Counted by hand: 8 runs of the grid, 2 noises at 2 seeds, warm-up off for two optimisers at 2 seeds.
TEST(StudyArms, AreAddedToTheGridOneChangeAtATime) {
  const std::vector<Cell> cells = expand(study_of(kArms));
  ASSERT_EQ(cells.size(), 16u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(cells[i].options.schedule.warmup, 0.05);
    EXPECT_THAT(cells[i].label, ::testing::Not(HasSubstr("noise")));
  }
  EXPECT_THAT(cells[8].label, HasSubstr("sgd B=2048 protocol A-epochs noise.batch=32 seed 1"));
  EXPECT_THAT(cells[9].label, HasSubstr("noise.batch=256 seed 1"));
  EXPECT_THAT(cells[12].label, HasSubstr("sgd B=2048 protocol A-epochs warmup=0"));
  EXPECT_THAT(cells[14].label, HasSubstr("lamb B=2048 protocol A-epochs warmup=0"));
  EXPECT_EQ(cells[8].options.train.learning_rate, 0.5);
  EXPECT_NE(cells[9].options.train.learning_rate, 0.5);
  EXPECT_EQ(cells[14].options.schedule.warmup, 0);
}

// The runs are those of a grid with the same values: an arm is no new kind of run.
TEST(StudyArms, AreTheRunsThatAGridWouldHave) {
  const std::string base = "[sweep]\nbatch_size = [32, 2048]\n";
  const std::vector<Cell> arms = expand(study_of(
      base +
      "[[sweep.arm]]\nwhen = { batch_size = 2048 }\nset = { noise.batch = 32, warmup = [0.0, 0.2] }\n"));
  const std::vector<Cell> grid =
      expand(study_of(base + "noise.batch = [0, 32]\nwarmup = [0.05, 0.0, 0.2]\n"
                             "[[sweep.skip]]\nwhen = { noise.batch = 0, warmup = [0.0, 0.2] }\n"
                             "[[sweep.skip]]\nwhen = { noise.batch = 32, warmup = 0.05 }\n"
                             "[[sweep.skip]]\nwhen = { noise.batch = 32, batch_size = 32 }\n"));
  ASSERT_EQ(arms.size(), 4u);
  ASSERT_EQ(grid.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(arms[i].run_id, grid[i].run_id);
}

TEST(StudyArms, TheCommandLineGivesOneValueToAll) {
  EXPECT_EQ(expand(study_of(kArms, {"noise.batch=0"})).size(), 12u);
  EXPECT_EQ(expand(study_of(kArms, {"batch_size=32"})).size(), 4u);
}

// The base leaves out what arms change, and is the plain setting; the arm names what it changes.
TEST(StudyArms, ContrastsGoByThem) {
  const Study study =
      study_of(std::string(kArms) +
               "[[contrast]]\nname = 'noise'\nbase = { optimizer = 'sgd', batch_size = 2048 }\n"
               "arm = { noise.batch = 32 }\noutcome = 'test_acc'\n");
  const std::vector<Cell> cells = expand(study);
  const std::vector<ContrastCells> found = cells_of_contrasts(study, cells);
  ASSERT_EQ(found.size(), 1u);
  for (const auto& [setting, batch] : {std::pair{0, 0}, {1, 32}}) {
    ASSERT_EQ(found[0].settings[setting].cells.size(), 2u);
    for (const Cell* cell : found[0].settings[setting].cells) {
      RunOptions options = cell->options;
      EXPECT_EQ(options.table().at("noise.batch").get(), OptionValue(int64_t{batch}));
      EXPECT_EQ(options.schedule.warmup, 0.05);
    }
  }
}

TEST(StudyArms, RefusedInOneLine) {
  const std::string base = "[sweep]\nbatch_size = [32, 64]\n";
  EXPECT_EQ(
      study_message(base + "[[sweep.arm]]\nset = { learning_rate = 0.5 }\n"),
      "s.toml:4: an arm can't set learning_rate; a rule gives it its learning rate, and it has the seeds of "
      "the settings it is made from");
  EXPECT_THAT(study_message(base + "[[sweep.arm]]\nset = { runtime.threads = 2 }\n"),
              HasSubstr("does not tell runs apart, so an arm can't set it"));
  EXPECT_THAT(
      study_message(base + "[[sweep.arm]]\nwhen = { batch_size = 128 }\nset = { warmup = 0.0 }\n"),
      HasSubstr("the rule can never hold: batch_size = 128 is not among the study's values (32, 64)"));
  EXPECT_THAT(study_message(base + "[[sweep.arm]]\nwhen = { batch_size = 64 }\n"),
              HasSubstr("the rule has no `set`"));
  EXPECT_THAT(
      study_message(base + "[[sweep.arm]]\nset = { warmup = 0.0 }\n[[sweep.set]]\nset = { warmup = 0.2 }\n"),
      HasSubstr("warmup is swept, so a rule can't set it"));
}

}  // namespace
}  // namespace basin
