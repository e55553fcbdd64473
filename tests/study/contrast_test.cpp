// Contrasts and hypotheses of a study file: what they pick, and every way in which they are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/contrast_cells.h"
#include "tests/study/study_text.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::study_of;

// Nine lines: what is added begins on line 10.
const std::string kGrid =
    "loss_levels = [1.5]\n"
    "target_loss = 1.25\n"
    "probes.run = ['top_eigenvalues']\n"
    "[sweep]\n"
    "optimizer = ['sgd', 'lamb']\n"
    "batch_size = [32, 64]\n"
    "protocol = ['A-epochs', 'B']\n"
    "warmup = [0.05, 0.2]\n"
    "seed = [1, 2, 3]\n";

const std::string kDrop =
    "[[contrast]]\n"
    "name = 'drop'\n"
    "base = { optimizer = 'sgd', batch_size = 32, protocol = 'A-epochs', warmup = 0.05 }\n"
    "arm = { batch_size = 64 }\n"
    "outcome = 'test_acc'\n";
const std::string kLambDrop =
    "[[contrast]]\n"
    "name = 'lamb-drop'\n"
    "base = { optimizer = 'lamb', batch_size = 32, protocol = 'A-epochs', warmup = 0.05 }\n"
    "arm = { batch_size = 64 }\n"
    "outcome = 'test_acc'\n";
const std::string kHypothesis =
    "[[hypothesis]]\n"
    "name = 'h'\n"
    "claim = 'Large batches lose.'\n"
    "contrasts = ['drop']\n"
    "expect = 'less'\n"
    "margin = 2\n";

std::vector<std::string> labels(const PickedSetting& setting) {
  std::vector<std::string> all;
  for (const Cell* cell : setting.cells) all.push_back(cell->label);
  return all;
}

TEST(Contrast, PicksASettingWithAllItsSeeds) {
  const Study study = study_of(kGrid + kDrop + kHypothesis);
  const std::vector<Cell> cells = expand(study);
  const std::vector<ContrastCells> found = cells_of_contrasts(study, cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].settings[0].role, "base");
  EXPECT_THAT(labels(found[0].settings[0]), ElementsAre("sgd B=32 protocol A-epochs warmup=0.05 seed 1",
                                                        "sgd B=32 protocol A-epochs warmup=0.05 seed 2",
                                                        "sgd B=32 protocol A-epochs warmup=0.05 seed 3"));
  EXPECT_EQ(labels(found[0].settings[1])[0], "sgd B=64 protocol A-epochs warmup=0.05 seed 1");
  EXPECT_THAT(found[0].paired_seeds, ElementsAre(1, 2, 3));
  EXPECT_EQ(found[0].also_differs, "");
  EXPECT_EQ(study.contrasts[0].scale, "difference");
  EXPECT_EQ(margin_of(study.contrasts[0], study.hypotheses), 2);
  EXPECT_THAT(study.hypotheses[0].expect, ElementsAre("less"));
}

TEST(Contrast, AtAnAnnealedLossPicksTheRunsWhoseBranchesAreAnnealed) {
  const std::string branches =
      "[[sweep.arm]]\nwhen = { optimizer = 'sgd' }\n"
      "set = { branch.from = 'warmup = 0.05', branch.at = ['loss-1.5', 'end'], branch.anneal = 0.2 }\n";
  const std::string asked = "[[contrast]]\nname = 'c'\noutcome = 'test_acc'\nat = 'annealed-1.25'\n";
  const Study study =
      study_of(kGrid + branches + asked +
               "base = { optimizer = 'sgd', batch_size = 32, protocol = 'B', warmup = 0.05 }\n"
               "arm = { batch_size = 64 }\n");
  const std::vector<Cell> cells = expand(study);
  const ContrastCells found = cells_of_contrasts(study, cells)[0];
  EXPECT_EQ(labels(found.settings[1])[0], "sgd B=64 protocol B warmup=0.05 seed 1");
  EXPECT_THAT(found.paired_seeds, ElementsAre(1, 2, 3));
}

TEST(Contrast, SeedsThatAreSkippedAreNotPairedAndRulesAreNamed) {
  const Study study = study_of(kGrid + kDrop +
                               "[[sweep.skip]]\nwhen = { batch_size = 64, seed = 2 }\n"
                               "[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { learning_rate = 0.2 }\n");
  const std::vector<Cell> cells = expand(study);
  const ContrastCells found = cells_of_contrasts(study, cells)[0];
  EXPECT_THAT(found.paired_seeds, ElementsAre(1, 3));
  EXPECT_EQ(found.also_differs, "learning_rate 0.1 / 0.2");
}

TEST(Contrast, DerivedOnesTakeOverFromTheirParts) {
  const Study study =
      study_of(kGrid + kDrop + kLambDrop +
               "[[contrast]]\nname = 'less'\nminuend = 'lamb-drop'\nsubtrahend = 'drop'\n"
               "[[contrast]]\nname = 'back'\nrecovers = 'drop'\narm = { batch_size = 64, warmup = 0.2 }\n");
  const std::vector<Cell> cells = expand(study);
  const std::vector<ContrastCells> found = cells_of_contrasts(study, cells);
  EXPECT_EQ(found[2].contrast->outcome, "test_acc");
  EXPECT_EQ(found[2].settings.size(), 4u);
  EXPECT_EQ(labels(found[2].settings[0])[0], "lamb B=32 protocol A-epochs warmup=0.05 seed 1");
  ASSERT_EQ(found[3].settings.size(), 3u);
  EXPECT_EQ(found[3].settings[2].role, "arm");
  EXPECT_EQ(labels(found[3].settings[2])[0], "sgd B=64 protocol A-epochs warmup=0.2 seed 1");
  EXPECT_EQ(found[3].contrast->scale, "difference");
}

// Before it has ended a tuning leaves several candidates for each setting.
TEST(Contrast, ASettingThatIsStillTunedIsOne) {
  const std::string tuned =
      "learning_rate = 'tuned'\n[tune]\ntrials = 3\nseeds = [9]\n[[tune.range]]\nkey = 'learning_rate'\nlow "
      "= 0.1\n"
      "high = 1.0\n[sweep]\nbatch_size = [32, 64]\nseed = [1, 2]\n"
      "[[contrast]]\nname = 'c'\noutcome = 'test_loss'\nbase = { batch_size = 32 }\narm = { batch_size = 64 "
      "}\n";
  const Study study = study_of(tuned);
  const std::vector<Cell> cells = expand(study);
  EXPECT_EQ(cells_of_contrasts(study, cells)[0].settings[0].cells.size(), 6u);
  const Study by_rate =
      study_of(tuned +
               "[[contrast]]\nname = 'd'\noutcome = 'test_loss'\nbase = { learning_rate = 0.1 }\n"
               "arm = { learning_rate = 0.2 }\n");
  const std::vector<Cell> same = expand(by_rate);
  EXPECT_THAT(testing::message_of([&] { cells_of_contrasts(by_rate, same); }),
              HasSubstr("learning_rate is searched, so a contrast can't go by it"));
}

struct BadClaim {
  const char* name;
  std::string text, message;
};
void PrintTo(const BadClaim& bad, std::ostream* out) { *out << bad.name; }

class BadClaims : public ::testing::TestWithParam<BadClaim> {};

TEST_P(BadClaims, AreOneLineWithFileAndLine) {
  const std::string message = testing::message_of([] {
    const Study study = study_of(kGrid + GetParam().text);
    const std::vector<Cell> cells = expand(study);
    cells_of_contrasts(study, cells);
  });
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, HasSubstr("s.toml:"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

// The contrast 'c' on sgd with these lines after its name; lines from 12.
std::string contrast(const std::string& lines) { return "[[contrast]]\nname = 'c'\n" + lines; }
std::string sgd(const std::string& base, const std::string& arm, const std::string& more) {
  return contrast("base = { optimizer = 'sgd', " + base + " }\narm = { " + arm + " }\n" + more);
}
const std::string kOne = "batch_size = 32, protocol = 'A-epochs', warmup = 0.05",
                  kAccuracy = "outcome = 'test_acc'\n";
const std::string kOneB = "batch_size = 32, protocol = 'B', warmup = 0.05";

INSTANTIATE_TEST_SUITE_P(
    Contrasts, BadClaims,
    ::testing::Values(
        BadClaim{"unknown_key", contrast("outcom = 'test_acc'\n"),
                 "s.toml:12: unknown key \"outcom\"; did you mean \"outcome\"?"},
        BadClaim{"unknown_option", contrast("base = { batchsize = 32 }\n"),
                 "s.toml:12: unknown key \"batchsize\"; did you mean \"batch_size\"?"},
        BadClaim{"wrong_value", contrast("base = { optimizer = 'sdg' }\n"), "did you mean \"sgd\"?"},
        BadClaim{"seed", contrast("base = { seed = 1 }\n"), "s.toml:12: a contrast takes all seeds"},
        BadClaim{"execution", contrast("base = { runtime.threads = 1 }\n"), "does not tell runs apart"},
        BadClaim{"no_table", contrast("base = 'sgd'\n"), "s.toml:12: base should be a table of options"},
        BadClaim{"no_name",
                 "[[contrast]]\nbase = { batch_size = 32 }\narm = { batch_size = 64 }\n" + kAccuracy,
                 "s.toml:10: the contrast has no `name`"},
        BadClaim{
            "bad_name",
            "[[contrast]]\nname = 'a b'\nbase = { batch_size = 32 }\narm = { batch_size = 64 }\n" + kAccuracy,
            "letters, digits"},
        BadClaim{"no_outcome", sgd(kOne, "batch_size = 64", ""),
                 "s.toml:10: the contrast \"c\" has no `outcome`"},
        BadClaim{"no_arm", contrast("base = { batch_size = 32 }\n" + kAccuracy), "has no `arm`"},
        BadClaim{"twice", kDrop + kDrop, "s.toml:15: there is another contrast \"drop\""},
        BadClaim{"unknown_outcome", sgd(kOne, "batch_size = 64", "outcome = 'test_ac'\n"),
                 "s.toml:14: unknown outcome \"test_ac\"; did you mean \"test_acc\"?"},
        BadClaim{"unknown_probe", sgd(kOne, "batch_size = 64", "outcome = 'probe.top_eigenvalue.lambda_1'\n"),
                 "unknown probe \"top_eigenvalue\"; did you mean \"top_eigenvalues\"?"},
        BadClaim{"unknown_number",
                 sgd(kOne, "batch_size = 64", "outcome = 'probe.top_eigenvalues.lambda_mim'\n"),
                 "did you mean \"lambda_min\"?"},
        BadClaim{"unknown_place", sgd(kOne, "batch_size = 64", kAccuracy + "at = 'finish'\n"),
                 "s.toml:15: unknown at \"finish\""},
        BadClaim{"annealed_without_branches",
                 sgd(kOneB, "batch_size = 64", kAccuracy + "at = 'annealed-1'\n"),
                 "run sgd B=32 protocol B warmup=0.05 seed 1 has annealed branches from 0 places, and two"},
        BadClaim{"annealed_from_one_place",
                 "[[sweep.arm]]\nwhen = { optimizer = 'sgd' }\n"
                 "set = { branch.from = 'warmup = 0.05', branch.at = 'loss-1.5', branch.anneal = 0.2 }\n" +
                     sgd(kOneB, "batch_size = 64", kAccuracy + "at = 'annealed-1'\n"),
                 "has annealed branches from 1 places"},
        BadClaim{"annealed_over_several_shares",
                 "[[sweep.arm]]\nwhen = { optimizer = 'sgd' }\n"
                 "set = { branch.from = 'warmup = 0.05', branch.at = ['loss-1.5', 'end'], branch.anneal = "
                 "[0.2, 0.4] }\n" +
                     sgd(kOneB, "batch_size = 64", kAccuracy + "at = 'annealed-1'\n"),
                 "has branches annealed over several shares"},
        BadClaim{
            "annealed_and_not_probed",
            "[[sweep.arm]]\nwhen = { optimizer = 'sgd' }\n"
            "set = { branch.from = 'warmup = 0.05', branch.at = ['loss-1.5', 'end'], branch.anneal = 0.2 }\n"
            "[[sweep.set]]\nwhen = { branch.at = 'end' }\nset = { probes.run = [] }\n" +
                sgd(kOneB, "batch_size = 64",
                    "outcome = 'probe.top_eigenvalues.lambda_1'\nat = 'annealed-1'\n"),
            "from 1 places, and two are needed; another one does not measure top_eigenvalues"},
        BadClaim{"annealed_updates",
                 sgd(kOneB, "batch_size = 64", "outcome = 'updates'\nat = 'annealed-1'\n"),
                 "at = \"annealed-1\": updates of annealed branches say nothing"},
        BadClaim{"annealed_nothing", sgd(kOneB, "batch_size = 64", kAccuracy + "at = 'annealed-'\n"),
                 "unknown at \"annealed-\""},
        BadClaim{"unknown_scale", sgd(kOne, "batch_size = 64", kAccuracy + "scale = 'rato'\n"),
                 "did you mean \"ratio\"?"},
        BadClaim{"no_cells",
                 sgd("batch_size = 48, protocol = 'A-epochs', warmup = 0.05", "batch_size = 64", kAccuracy),
                 "s.toml:10: base of \"c\" picks no run: none has batch_size = 48 (there is 32, 64)"},
        BadClaim{"no_such_option", sgd(kOne + ", lars.momentum = 0.9", "batch_size = 64", kAccuracy),
                 "no run with that option"},
        BadClaim{"several", sgd("batch_size = 32, warmup = 0.05", "batch_size = 64", kAccuracy),
                 "s.toml:10: base of \"c\" picks several settings, which differ in protocol (\"A-epochs\", "
                 "\"B\")"},
        BadClaim{"several_arms",
                 sgd(kOne, "optimizer = 'lamb', batch_size = 64, warmup = 0.2, epochs = 3.0", kAccuracy),
                 "none has epochs = 3.0 (there is 10.0)"},
        BadClaim{"same_value", sgd(kOne, "batch_size = 32", kAccuracy),
                 "s.toml:13: batch_size = 32 is the same in base and arm"},
        BadClaim{"same_setting",
                 sgd("batch_size = 32, protocol = 'A-epochs', warmup = 0.05", "epochs = 10.0", kAccuracy),
                 "arm of \"c\" picks the same setting as its base"},
        BadClaim{"not_probed", sgd(kOne, "batch_size = 64", "outcome = 'probe.noise_scale.b_simple'\n"),
                 "does not measure noise_scale (probes.run = [\"top_eigenvalues\"])"},
        BadClaim{"not_probed_in_one_cell",
                 "[[sweep.set]]\nwhen = { batch_size = 64 }\nset = { probes.run = [] }\n" +
                     sgd(kOne, "batch_size = 64", "outcome = 'probe.top_eigenvalues.lambda_1'\n"),
                 "run sgd B=64 protocol A-epochs warmup=0.05 seed 1 does not measure top_eigenvalues"},
        BadClaim{
            "not_probed_there",
            "[[sweep.set]]\nset = { probes.at = ['end'] }\n" +
                sgd(kOne, "batch_size = 64", "outcome = 'probe.top_eigenvalues.lambda_1'\nat = 'loss-1.5'\n"),
            "does not measure top_eigenvalues at loss-1.5 (probes.at = [\"end\"])"},
        BadClaim{
            "no_twin",
            sgd(kOne, "batch_size = 64", "outcome = 'probe.top_eigenvalues.lambda_1'\nat = 'end@twin'\n"),
            "does not measure top_eigenvalues (probes.twin = [])"},
        BadClaim{"no_number_of_the_twin", sgd(kOne, "batch_size = 64", kAccuracy + "at = 'end@twin'\n"),
                 "only probes measure at the twin, and test_acc is no probe's number"},
        BadClaim{"no_level", sgd(kOne, "batch_size = 64", kAccuracy + "at = 'loss-1.25'\n"),
                 "has no loss-1.25 (levels: loss-1.5)"},
        BadClaim{"no_budget", sgd(kOneB, "batch_size = 64", kAccuracy + "at = 'budget'\n"),
                 "has no fixed budget (protocol B)"}),
    [](const auto& info) { return info.param.name; });

const std::string kUnknown = "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'lamb-dro'\n";

INSTANTIATE_TEST_SUITE_P(
    Derived, BadClaims,
    ::testing::Values(
        BadClaim{"unknown", kDrop + kLambDrop + kUnknown,
                 "s.toml:20: unknown contrast \"lamb-dro\"; did you mean \"lamb-drop\"?"},
        BadClaim{"half", kDrop + "[[contrast]]\nname = 'd'\nminuend = 'drop'\n", "has no `subtrahend`"},
        BadClaim{
            "both",
            kDrop + "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'drop'\noutcome = 'test_acc'\n",
            "`outcome` and `minuend` exclude each other"},
        BadClaim{"itself", kDrop + "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'd'\n",
                 "s.toml:15: the contrast \"d\" is made from itself"},
        BadClaim{"circle",
                 kDrop + "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'e'\n"
                         "[[contrast]]\nname = 'e'\nminuend = 'd'\nsubtrahend = 'drop'\n",
                 "is made from itself"},
        BadClaim{"equal_parts", kDrop + "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'drop'\n",
                 "are the same"},
        BadClaim{"apples_and_pears",
                 kDrop + sgd(kOne, "batch_size = 64", "outcome = 'test_loss'\n") +
                     "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'c'\n",
                 "can't be subtracted"},
        BadClaim{"recovers_nothing", "[[contrast]]\nname = 'r'\nrecovers = 'drop'\narm = { warmup = 0.2 }\n",
                 "unknown contrast \"drop\""},
        BadClaim{"recovers_a_difference",
                 kDrop + kLambDrop +
                     "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'lamb-drop'\n"
                     "[[contrast]]\nname = 'r'\nrecovers = 'd'\narm = { warmup = 0.2 }\n",
                 "which has no base and arm of its own"},
        BadClaim{"recovers_with_base",
                 kDrop + "[[contrast]]\nname = 'r'\nrecovers = 'drop'\nbase = { warmup = 0.2 }\n",
                 "`base` and `recovers` exclude each other"},
        BadClaim{"recovers_with_large",
                 kDrop + "[[contrast]]\nname = 'r'\nrecovers = 'drop'\narm = { batch_size = 64 }\n",
                 "arm of \"r\" picks the same setting as its large"},
        BadClaim{"difference_of_a_recovery",
                 kDrop + "[[contrast]]\nname = 'r'\nrecovers = 'drop'\narm = { warmup = 0.2 }\n"
                         "[[contrast]]\nname = 'd'\nminuend = 'r'\nsubtrahend = 'drop'\n",
                 "recovered fraction, which has no effect to subtract"},
        BadClaim{"exploratory_part",
                 kDrop + "exploratory = true\n" + kLambDrop +
                     "[[contrast]]\nname = 'd'\nminuend = 'drop'\nsubtrahend = 'lamb-drop'\n",
                 "\"drop\" is exploratory"}),
    [](const auto& info) { return info.param.name; });

std::string hypothesis(const std::string& lines) { return kDrop + "[[hypothesis]]\nname = 'h'\n" + lines; }

INSTANTIATE_TEST_SUITE_P(
    Hypotheses, BadClaims,
    ::testing::Values(
        BadClaim{"no_claim", hypothesis("contrasts = ['drop']\nexpect = 'less'\nmargin = 1\n"),
                 "s.toml:15: the hypothesis \"h\" has no `claim`"},
        BadClaim{"no_contrast", hypothesis("claim = 'x'\nexpect = 'less'\nmargin = 1\n"),
                 "names no contrast"},
        BadClaim{"empty", hypothesis("claim = 'x'\ncontrasts = []\nexpect = 'less'\nmargin = 1\n"),
                 "names no contrast"},
        BadClaim{"unknown_contrast",
                 hypothesis("claim = 'x'\ncontrasts = ['dorp']\nexpect = 'less'\nmargin = 1\n"),
                 "unknown contrast \"dorp\"; did you mean \"drop\"?"},
        BadClaim{"contrast_twice",
                 hypothesis("claim = 'x'\ncontrasts = ['drop', 'drop']\nexpect = 'less'\nmargin = 1\n"),
                 "names \"drop\" twice"},
        BadClaim{"no_expectation", hypothesis("claim = 'x'\ncontrasts = ['drop']\nmargin = 1\n"),
                 "has no `expect`"},
        BadClaim{"no_margin", hypothesis("claim = 'x'\ncontrasts = ['drop']\nexpect = 'less'\n"),
                 "has no `margin`"},
        BadClaim{"rule", hypothesis("rule = 'al'\n"),
                 "s.toml:17: rule = \"al\" violates rule one of all | any; did you mean \"all\"?"},
        BadClaim{"expectation", hypothesis("expect = 'grater'\n"), "did you mean \"greater\"?"},
        BadClaim{"too_many",
                 hypothesis("claim = 'x'\ncontrasts = ['drop']\nexpect = ['less', 'greater']\nmargin = 1\n"),
                 "expect has 2 entries for 1 contrasts"},
        BadClaim{"margin_of_points",
                 hypothesis("claim = 'x'\ncontrasts = ['drop']\nexpect = 'less'\nmargin = 0\n"),
                 "a number of points"},
        BadClaim{
            "margin_of_a_ratio",
            sgd(kOne, "batch_size = 64", "outcome = 'updates'\n") +
                "[[hypothesis]]\nname = 'h'\nclaim = 'x'\ncontrasts = ['c']\nexpect = 'less'\nmargin = 0.5\n",
            "a factor above 1"},
        BadClaim{"unknown", hypothesis("margn = 1\n"), "unknown key \"margn\"; did you mean \"margin\"?"},
        BadClaim{"single_brackets", "[hypothesis]\nname = 'h'\n",
                 "s.toml:11: each hypothesis is a table of its own, [[hypothesis]]"},
        BadClaim{"second", kDrop + kHypothesis + kHypothesis,
                 "s.toml:21: there is another hypothesis \"h\""}),
    [](const auto& info) { return info.param.name; });

// Arms of LAMB alone: what the conditions don't name is as in all other settings, and a run that takes its ratios from the run of its
// own seed is of one setting with the other seeds'.
const std::string kTrustArms =
    "lamb.trust_from = 'lamb.trust = \"live\"'\n"
    "[sweep]\noptimizer = ['sgd', 'lamb']\nbatch_size = [32, 64]\nseed = [1, 2, 3]\n"
    "[[sweep.arm]]\nwhen = { optimizer = 'lamb' }\nset = { lamb.trust = ['frozen', 'mean'] }\n";

TEST(Contrast, AMethodsOwnArmsAreLeftOutWhereTheBaseIsOfAnotherMethod) {
  const Study study =
      study_of(kTrustArms + "[[contrast]]\nname = 'c'\nbase = { optimizer = 'sgd', batch_size = 64 }\n" +
               "arm = { optimizer = 'lamb' }\noutcome = 'test_acc'\n");
  const std::vector<Cell> cells = expand(study);
  const PickedSetting arm = cells_of_contrasts(study, cells)[0].settings[1];
  ASSERT_EQ(arm.cells.size(), 3u);
  EXPECT_EQ(trust_arm(arm.cells[0]->options)->trust, "live");
}

TEST(Contrast, ARunOfTheSameSeedThatIsTakenFromDoesNotSplitASetting) {
  const Study study =
      study_of(kTrustArms + "[[contrast]]\nname = 'c'\nbase = { optimizer = 'lamb', batch_size = 64 }\n" +
               "arm = { lamb.trust = 'frozen' }\noutcome = 'test_acc'\n");
  const std::vector<Cell> cells = expand(study);
  EXPECT_THAT(cells_of_contrasts(study, cells)[0].paired_seeds, ElementsAre(1, 2, 3));
}

// What is no mistake.
TEST(Contrast, TheTargetOfProtocolBAndALevelAreBothPlaces) {
  for (const char* at : {"loss-1.25", "loss-1.5", "end"}) {
    const Study study =
        study_of(kGrid + sgd(kOneB, "batch_size = 64",
                             "outcome = 'probe.top_eigenvalues.lambda_1'\nat = '" + std::string(at) + "'\n"));
    const std::vector<Cell> cells = expand(study);
    EXPECT_EQ(cells_of_contrasts(study, cells).size(), 1u) << at;
    EXPECT_EQ(study.contrasts[0].scale, "ratio");
  }
  const Study none = study_of(kGrid);
  EXPECT_THAT(cells_of_contrasts(none, expand(none)), IsEmpty());
}

}  // namespace
}  // namespace basin
