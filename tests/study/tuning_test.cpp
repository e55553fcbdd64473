// [tune]: which cells are tried in which rung, what a selection gives, and what is refused with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "study/compare.h"
#include "tests/study/study_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::study_of;

std::string tuning_message(const std::string& text, const std::vector<std::string>& sets = {}) {
  return testing::message_of([&] {
    const Study study = study_of(text, sets);
    expand(study);
    expand_tuning(study);
  });
}

const std::string kTuned =
    "learning_rate = 'tuned'\n"
    "[tune]\ntrials = 8\nseeds = [7, 8]\nhalving = 2\nrungs = 2\n"
    "[[tune.range]]\nwhen = { optimizer = 'sgd' }\nkey = 'sgd.momentum'\nlow = 0.5\nhigh = 0.99\nscale = "
    "'one_minus_log'\n"
    "[[tune.range]]\nkey = 'learning_rate'\nlow = 0.001\nhigh = 0.1\n"
    "[[tune.range]]\nwhen = { optimizer = 'sgd' }\nkey = 'learning_rate'\nlow = 0.01\nhigh = "
    "1.0\nrelative_to = 'sqrt_batch'\n"
    "[sweep]\noptimizer = ['sgd', 'lamb']\nbatch_size = [64, 1024]\nseed = [1, 2, 3]\n";

std::map<std::string, std::set<int64_t>> trials_by_group(const std::vector<Cell>& cells) {
  std::map<std::string, std::set<int64_t>> trials;
  for (const Cell& cell : cells) trials[cell.group].insert(cell.candidate.trial);
  return trials;
}

TEST(StudyTuning, GivesEveryGroupTheSameBudget) {
  const Study study = study_of(kTuned);
  const std::vector<Cell> first = expand_tuning(study);
  EXPECT_EQ(first.size(), 4u * 8 * 2);  // groups, trials, seeds
  for (const auto& [group, trials] : trials_by_group(first)) EXPECT_EQ(trials.size(), 8u) << group;
  for (const Cell& cell : first) {
    EXPECT_EQ(cell.options.train.epochs, study.base.train.epochs / 2);
    EXPECT_EQ(cell.options.data.validation, 0.1);
  }
  Entrants entrants;
  for (const auto& [group, trials] : trials_by_group(first)) entrants[group] = {1, 3, 5, 6};
  const std::vector<Cell> second = expand_tuning(study, 1, entrants);
  EXPECT_EQ(second.size(), 4u * 4 * 2);
  for (const auto& [group, trials] : trials_by_group(second)) EXPECT_EQ(trials, entrants[group]) << group;
  for (const Cell& cell : second) EXPECT_EQ(cell.options.train.epochs, study.base.train.epochs);
}

TEST(StudyTuning, PairsTheRateAcrossGroupsAndFollowsTheBatch) {
  std::map<std::string, std::map<int64_t, double>> rates;
  for (const Cell& cell : expand_tuning(study_of(kTuned)))
    rates[cell.group][cell.candidate.trial] = cell.options.train.learning_rate;
  for (const auto& [trial, rate] : rates.at("optimizer=sgd batch_size=64")) {
    // Six digits are kept of each. 16 times the batch is 4 times the rate; at 64 = 256/4 SGD's range is 0.005
    // to 0.5.
    EXPECT_NEAR(rates.at("optimizer=sgd batch_size=1024").at(trial) / rate, 4, 1e-4);
    EXPECT_NEAR(rates.at("optimizer=lamb batch_size=64").at(trial) / rate, 0.2, 1e-5);
  }
}

TEST(StudyTuning, TheWinnersRunIsTheOneThatWasTried) {
  std::string text = kTuned;
  text.insert(text.find("[[tune.range]]"), "sampler_seed = 5\n");
  const Study study = study_of(text, {"tune.seeds=[1]", "tune.halving=0", "tune.rungs=0"});
  const std::vector<Cell> tried = expand_tuning(study);
  const Cell& winner = tried.at(3);
  const std::vector<Cell> cells = expand(study, {{winner.group, winner.candidate.settings()}});
  const auto same = [&](const Cell& cell) { return cell.run_id == winner.run_id; };
  EXPECT_EQ(std::count_if(cells.begin(), cells.end(), same), 1);
  // The others are in the grid as long as nothing is chosen: the folder's runs are known by it.
  EXPECT_EQ(expand(study).size(), 4u * 8 * 3);
  EXPECT_EQ(fingerprints(study_of(study.text)), fingerprints(study));
}

TEST(StudyTuning, FingerprintsKnowRungsAndSeeds) {
  const auto ours = fingerprints(study_of(kTuned));
  EXPECT_NE(ours, fingerprints(study_of(kTuned, {"tune.halving=0", "tune.rungs=0"})));
  const std::vector<std::string> speed = {"protocol=B", "tune.halving=0", "tune.rungs=0"};
  std::vector<std::string> by_gradients = speed;
  by_gradients.emplace_back("tune.select=gradients");
  EXPECT_NE(fingerprints(study_of(kTuned, speed)), fingerprints(study_of(kTuned, by_gradients)));
  EXPECT_NE(ours, fingerprints(study_of(kTuned, {"tune.seeds=[9]"})));
  EXPECT_NE(ours, fingerprints(study_of(kTuned, {"tune.sampler_seed=9"})));
  EXPECT_EQ(ours, fingerprints(study_of("# a word\n" + kTuned)));
}

TEST(StudyTuning, AValueOnTheCommandLineEndsTheSearch) {
  EXPECT_THAT(expand_tuning(study_of(kTuned, {"learning_rate=0.3"})), IsEmpty());
  const std::vector<Cell> cells = expand_tuning(study_of(kTuned, {"sgd.momentum=0.25"}));
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.candidate.values.size(), 1u);
    RunOptions options = cell.options;
    EXPECT_EQ(options.table().at("sgd.momentum").get(), OptionValue(0.25));
  }
}

TEST(StudyTuning, RulesTakeGroupsOutAndIn) {
  const Study out =
      study_of(kTuned + "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.02 }\n");
  EXPECT_EQ(trials_by_group(expand_tuning(out)).size(), 2u);
  std::string text = kTuned;
  text.replace(text.find("'tuned'"), 7, "0.02");
  const Study in =
      study_of(text + "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 'tuned' }\n");
  EXPECT_EQ(trials_by_group(expand_tuning(in)).size(), 2u);
}

class StudySelectionFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    write_file_atomically(folder_ / "selection.toml", text);
    return folder_ / "selection.toml";
  }
  testing::TemporaryFolder folder_;
};

const std::string kTakes = "learning_rate = 'tuned'\n[sweep]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2]\n";
const std::string kChoices =
    "[[choice]]\nwhen = { optimizer = 'sgd', batch_size = 256 }\nset = { learning_rate = 0.3, sgd.momentum = "
    "0.5 }\n"
    "tried = [[1, nan]]\n"
    "[[choice]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.02 }\n"
    "[[choice]]\nwhen = { optimizer = 'lars' }\nset = { learning_rate = 9.0 }\n";

TEST_F(StudySelectionFile, GivesTheWinnersAndIsFrozen) {
  const std::string path = write(kChoices);
  const Study study = parse_study(kTakes, "s.toml", {}, path);
  EXPECT_THAT(expand_tuning(study), IsEmpty());
  std::vector<double> rates;
  for (const Cell& cell : expand(study)) rates.push_back(cell.options.train.learning_rate);
  EXPECT_THAT(rates, ElementsAre(0.3, 0.3, 0.02, 0.02));
  RunOptions first = expand(study)[0].options;
  EXPECT_EQ(first.table().at("sgd.momentum").get(), OptionValue(0.5));
  // The frozen text does without the file, and so does one that names it.
  EXPECT_EQ(fingerprints(study_of(study.text)), fingerprints(study));
  const Study named = study_of(kTakes + "selection = '" + path + "'\n");
  std::filesystem::remove(path);
  EXPECT_EQ(fingerprints(study_of(named.text)), fingerprints(study));
}

TEST_F(StudySelectionFile, SaysWhatDoesNotFit) {
  const auto message = [&](const std::string& study, const std::string& choices) -> std::string {
    try {
      expand(parse_study(study, "s.toml", {}, write(choices)));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("batch_size = 64\n" + kTakes, kChoices),
              HasSubstr("selection.toml: no choice holds for optimizer=sgd"));
  EXPECT_THAT(
      message(kTakes, kChoices + "[[choice]]\nwhen = { optimizer = 'sgd' }\nset = { learning_rate = 1.0 }\n"),
      HasSubstr("selection.toml:13: more than one choice holds for optimizer=sgd"));
  EXPECT_THAT(message("[sweep]\nseed = [1]\n", kChoices), HasSubstr("there is none"));
  EXPECT_THAT(message(kTakes, "[[choice]]\ngroup = 'x'\nlearning_rate = 1.0\n"),
              HasSubstr("has no `when` and `set`"));
  EXPECT_THAT(message(kTakes, "a = 1\n"), HasSubstr("has no [[choice]]"));
}

struct BadTuning {
  const char *name, *text, *message;
};
void PrintTo(const BadTuning& bad, std::ostream* out) { *out << bad.name; }

class TuningErrors : public ::testing::TestWithParam<BadTuning> {};

TEST_P(TuningErrors, NameFileLineAndReason) {
  EXPECT_THAT(tuning_message(GetParam().text), HasSubstr(GetParam().message));
}

#define RANGE "[[tune.range]]\nkey = 'learning_rate'\nlow = 0.1\nhigh = 1.0\n"

INSTANTIATE_TEST_SUITE_P(
    Study, TuningErrors,
    ::testing::Values(
        BadTuning{"without_range", "learning_rate = 'tuned'\n[tune]\ntrials = 4\n",
                  "s.toml:1: learning_rate = \"tuned\" needs a [[tune.range]]"},
        BadTuning{"without_tune", "[sweep]\nlearning_rate = 'tuned'\n",
                  "s.toml:2: learning_rate = \"tuned\" needs"},
        BadTuning{"without_tuned", "[tune]\ntrials = 4\n" RANGE,
                  "s.toml:2: [tune] needs learning_rate = \"tuned\""},
        BadTuning{"unknown_key", "learning_rate = 'tuned'\n[tune]\ntrails = 4\n" RANGE,
                  "s.toml:3: unknown key \"tune.trails\""},
        BadTuning{"one_trial", "learning_rate = 'tuned'\n[tune]\ntrials = 1\n" RANGE,
                  "s.toml:3: tune.trials = 1 violates"},
        BadTuning{"halving_one", "learning_rate = 'tuned'\n[tune]\nhalving = 1\n" RANGE,
                  "s.toml:3: tune.halving = 1 violates"},
        BadTuning{"speed_without_target", "learning_rate = 'tuned'\n[tune]\nselect = 'gradients'\n" RANGE,
                  "s.toml:3: select = \"gradients\" needs protocol = \"B\""},
        BadTuning{
            "speed_by_halves",
            "protocol = 'B'\nlearning_rate = 'tuned'\n[tune]\nselect = 'gradients'\nhalving = 2\n" RANGE,
            "s.toml:4: tune.select = \"gradients\" with tune.halving"},
        BadTuning{"speed_misspelled", "learning_rate = 'tuned'\n[tune]\nselect = 'gradient'\n" RANGE,
                  "did you mean \"gradients\""},
        BadTuning{"nothing_to_halve", "learning_rate = 'tuned'\n[tune]\ntrials = 4\nhalving = 4\n" RANGE,
                  "nothing to halve"},
        BadTuning{"low_above_high",
                  "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'learning_rate'\nlow = 1.0\nhigh = 0.1\n",
                  "s.toml:2: the range of learning_rate has low = 1 >= high = 0.1"},
        BadTuning{"log_of_zero",
                  "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'learning_rate'\nlow = 0.0\nhigh = 0.1\n",
                  "scale = \"log\" needs low > 0"},
        BadTuning{"momentum_of_one",
                  "learning_rate = 'tuned'\n" RANGE
                  "[[tune.range]]\nkey = 'sgd.momentum'\nlow = 0.5\nhigh = 1.0\nscale = 'one_minus_log'\n",
                  "needs high < 1"},
        BadTuning{"end_outside",
                  "learning_rate = 'tuned'\n" RANGE
                  "[[tune.range]]\nkey = 'final_factor'\nlow = 0.1\nhigh = 7.0\nscale = 'linear'\n",
                  "s.toml:6: final_factor = 7"},
        BadTuning{"warmup_beyond_the_run",
                  "learning_rate = 'tuned'\n[tune]\ntrials = 2\n" RANGE
                  "[[tune.range]]\nkey = 'warmup'\nlow = 0.01\nhigh = 1.5\n",
                  "s.toml:8: the range of warmup ends at 1.5: schedule_unit = \"share\" counts in shares"},
        BadTuning{"warmup_grows_beyond_the_run",
                  "batch_size = 512\nbase_batch = 64\nlearning_rate = 'tuned'\n[tune]\ntrials = 2\n" RANGE
                  "[[tune.range]]\nkey = 'warmup'\nlow = 0.01\nhigh = 0.5\nrelative_to = 'batch'\n",
                  "s.toml:10: the range of warmup ends at 4: schedule_unit = \"share\""},
        BadTuning{"no_low", "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'learning_rate'\nhigh = 0.1\n",
                  "has no `low`"},
        BadTuning{"no_key", "learning_rate = 'tuned'\n[[tune.range]]\nlow = 0.1\nhigh = 0.2\n",
                  "the range has no `key`"},
        BadTuning{"unknown_option",
                  "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'sgd.momentun'\nlow = 0.1\nhigh = 0.2\n",
                  "s.toml:2: unknown key \"sgd.momentun\""},
        BadTuning{"unknown_range_key", "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'warmup'\nmin = 0.1\n",
                  "s.toml:4: unknown key \"min\""},
        BadTuning{"unknown_scale", "learning_rate = 'tuned'\n" RANGE "scale = 'cubic'\n",
                  "s.toml:6: scale = \"cubic\" violates"},
        BadTuning{"not_a_number",
                  "learning_rate = 'tuned'\n[[tune.range]]\nkey = 'schedule'\nlow = 0.1\nhigh = 0.2\n",
                  "schedule is not a number"},
        BadTuning{"yardstick",
                  "learning_rate = 'tuned'\n" RANGE "[[tune.range]]\nkey = 'epochs'\nlow = 1.0\nhigh = 2.0\n",
                  "s.toml:6: epochs can't be searched"},
        BadTuning{"swept",
                  "learning_rate = 'tuned'\n" RANGE "[[tune.range]]\nkey = 'warmup'\nlow = 0.1\nhigh = 0.2\n"
                  "[sweep]\nwarmup = [0.1, 0.2]\n",
                  "s.toml:6: warmup is swept"},
        BadTuning{"set_by_a_rule",
                  "learning_rate = 'tuned'\n" RANGE "[[tune.range]]\nkey = 'warmup'\nlow = 0.1\nhigh = 0.2\n"
                  "[[sweep.set]]\nset = { warmup = 0.2 }\n",
                  "s.toml:11: warmup is searched (s.toml:6)"},
        BadTuning{"by_seed", "learning_rate = 'tuned'\n" RANGE "when = { seed = 1 }\n",
                  "s.toml:6: a range can't depend on seed"},
        BadTuning{"never_holds", "learning_rate = 'tuned'\n" RANGE "when = { optimizer = 'lamb' }\n",
                  "s.toml:6: the rule can never hold"},
        BadTuning{"a_group_without",
                  "learning_rate = 'tuned'\n" RANGE "when = { optimizer = 'sgd' }\n"
                  "[sweep]\noptimizer = ['sgd', 'lamb']\n",
                  "no [[tune.range]] of learning_rate holds for optimizer=lamb"},
        BadTuning{"with_select",
                  "[tune]\ntrials = 4\n" RANGE
                  "[sweep]\nlearning_rate = 'tuned'\nselect = 'validation_loss'\n",
                  "s.toml:9: sweep.select chooses from lists"},
        BadTuning{"with_list",
                  "learning_rate = 'tuned'\n" RANGE "[[sweep.set]]\nset = { learning_rate = [0.1, 0.2] }\n",
                  "s.toml:7: a list of learning rates next to"},
        BadTuning{"no_validation", "learning_rate = 'tuned'\ndata.validation = 0.0\n" RANGE,
                  "[tune] needs data.validation > 0"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(StudyTuning, AWarmupInEpochsMayBeLongerThanOne) {
  const std::string range = "[[tune.range]]\nkey = 'warmup'\nlow = 0.5\nhigh = 5.0\n";
  EXPECT_EQ(
      tuning_message("schedule_unit = 'epochs'\nlearning_rate = 'tuned'\n[tune]\ntrials = 2\n" RANGE + range),
      "no error");
}

TEST(TuningErrors, AreOneLine) {
  EXPECT_EQ(tuning_message("learning_rate = 'tuned'\n[tune]\ntrials = 4\n").find('\n'), std::string::npos);
}

// What a study with [tune] holds out where it doesn't say: all settings but the arm's.
TEST(StudyTuning, AnArmMayHoldOutAnotherShare) {
  const std::string text =
      "learning_rate = 'tuned'\n[tune]\ntrials = 2\nseeds = [11]\n"
      "[[tune.range]]\nkey = 'learning_rate'\nlow = 0.01\nhigh = 1.0\n"
      "[sweep]\nbatch_size = [32, 64]\nseed = [1]\n"
      "[[sweep.arm]]\nwhen = { batch_size = 64 }\nset = { data.validation = 0.3 }\n";
  const auto held_out = [&](const std::vector<std::string>& sets) {
    std::map<std::string, double> shares;
    for (const Cell& cell : expand_tuning(study_of(text, sets)))
      shares[cell.group] = cell.options.data.validation;
    std::vector<double> found;
    for (const auto& [group, share] : shares) found.push_back(share);
    return found;
  };
  EXPECT_THAT(held_out({}), ::testing::UnorderedElementsAre(0.1, 0.1, 0.3));
  EXPECT_THAT(held_out({"data.validation=0.2"}), ElementsAre(0.2, 0.2));
  const std::string rule = "[[sweep.skip]]\nwhen = { data.validation = 0.1, batch_size = 64 }\n";
  EXPECT_EQ(tuning_message(text + rule, {"data.validation=0.2"}), "no error");
  EXPECT_THAT(tuning_message(text + "[[sweep.skip]]\nwhen = { data.validation = 0.0 }\n"),
              HasSubstr("the rule can never hold"));
}

}  // namespace
}  // namespace basin
