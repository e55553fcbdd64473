// Counts and forecasts against sums done by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "probes/registry.h"
#include "runs/checkpoints.h"
#include "runs/train.h"
#include "sweep/cost_model.h"
#include "tests/support/message_of.h"
#include "tests/support/pass_count.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

Cell cell_of(const std::string& text) { return expand(parse_study(text, "s.toml", {})).at(0); }

constexpr SplitSizes kSizes{5000, 0, 1000};

ProbeCost expected_cost(const std::string& probe, const RunOptions& options) {
  return find_entry(probe_registry(), probe, "probe").make(options.probe_options.at(probe))->expected_cost();
}

TEST(PlanWork, CountsAFixedBudget) {
  // 8 epochs of 5,000 at B = 256: 40,000 / 256 = 156.25 updates, and one evaluation of 5,000 + 1,000 images.
  const CellWork work = plan_work(cell_of("epochs = 8\nbatch_size = 256\n"), kSizes, true);
  EXPECT_EQ(work.updates, 157);
  EXPECT_EQ(work.gradients, 157L * 256);
  EXPECT_EQ(work.forwards, 6000);
  EXPECT_EQ(work.probe_gradients, 0);
}

TEST(PlanWork, ABatchBeyondTheDataCostsTheDataOnce) {
  const std::string text =
      "protocol = 'B'\nmax_gradients = 300000\ncheck_every = 10000\nbatch_size = 65536\n";
  const CellWork work = plan_work(cell_of(text), kSizes, true);
  EXPECT_EQ(work.updates, 60);
  EXPECT_EQ(work.gradients, 300000);
  EXPECT_EQ(work.forwards,
            6000 + 5000 * 59);  // one check per update: check_every counts examples, duplicates too
  EXPECT_EQ(plan_work(cell_of("duplicates = 'repeated'\n" + text), kSizes, true).updates, 5);
}

// From the branch point on: 100 updates of 32 in the parent, and what each branch adds.
TEST(CostOfABranch, IsWhatComesAfterItsParent) {
  const auto work_of = [](const std::string& branch) {
    const std::vector<Cell> cells =
        expand(parse_study("model = 'mlp'\nprotocol = 'A-updates'\nupdates = 100\nbatch_size = "
                           "32\ncheckpoint_every = 10\nloss_levels = [1.5]\n"
                           "[data]\nset = 'synthetic'\ntrain_examples = 200\ntest_examples = "
                           "60\n[sweep]\nbranch.from = ['', 'batch_size = "
                           "32']\n[branch]\n" +
                               branch,
                           "s.toml", {}));
    const CostModel costs(cells, false);
    EXPECT_EQ(costs.work(cells[0].run_id).updates, 100);
    return costs.work(cells[1].run_id);
  };
  EXPECT_EQ(work_of("at = 'u000030'\n").updates, 70);
  EXPECT_EQ(work_of("at = 'u000030'\n").gradients, 70 * 32);
  EXPECT_EQ(work_of("at = 'start'\n").updates, 100);
  EXPECT_EQ(work_of("at = 'end'\nupdates = 7\n").updates, 7);
  EXPECT_EQ(work_of("at = 'end'\nanneal = 0.4\n").updates, 40);
  EXPECT_EQ(work_of("at = 'u000050'\nanneal = 0.2\n").updates, 30);  // 3 / (1 - 0.9) are more than 10
  EXPECT_EQ(work_of("at = 'loss-1.5'\n").updates, 50);               // taken to be half-way
  EXPECT_THAT(testing::message_of([&] { work_of("at = 'end'\n"); }),
              ::testing::HasSubstr("nothing is left of the budget"));
}

TEST(SecondsLeft, AreThoseOfWhatIsStillToBeDone) {
  const std::string text =
      "protocol = 'A-updates'\nupdates = 100\nbatch_size = 32\n[data]\nset = 'synthetic'\n"
      "[probes]\nrun = ['top_eigenvalues']\nsubset = 1000\n";
  const Cell cell = cell_of(text);
  const CostModel costs({cell}, true);
  const double all = costs.seconds(cell.run_id), probes = costs.probe_seconds(cell.run_id);
  ASSERT_GT(probes, 0);
  ASSERT_GT(all, probes);
  RunStatus status;
  EXPECT_EQ(costs.seconds_left(cell, status), all);
  status.status = RunState::running;
  status.update = 25;
  status.done = 0.25;
  EXPECT_DOUBLE_EQ(costs.seconds_left(cell, status), probes + 0.75 * (all - probes));
  status.status = RunState::finished;
  EXPECT_EQ(costs.seconds_left(cell, status), probes);
}

// The cap of protocol B is far away where [[sweep.expect]] says that a run ends earlier.
TEST(SecondsLeft, FollowTheStudysExpectation) {
  const Cell cell = cell_of(
      "protocol = 'B'\nmax_gradients = 300000\nbatch_size = 1000\n[data]\nset = 'synthetic'\n"
      "[[sweep.expect]]\ngradients = 20000\n");
  const CostModel costs({cell}, false);
  const int64_t updates = costs.work(cell.run_id).updates;
  ASSERT_EQ(updates % 4, 0);
  RunStatus status;
  status.status = RunState::running;
  status.update = updates * 3 / 4;
  status.done = 0.05;
  EXPECT_DOUBLE_EQ(costs.seconds_left(cell, status), 0.25 * costs.seconds(cell.run_id));
  status.update = updates + 5;
  EXPECT_EQ(costs.seconds_left(cell, status), 0);
}

double summary_of(const RunRecord& run, const std::string& name) {
  for (const auto& [key, value] : run.summary)
    if (key == name) return static_cast<double>(std::get<int64_t>(value));
  return NAN;
}

// Against runs, which count on the stream of examples. Nobody reaches the target; one with 3 x 3 examples of 8 has
// batches with examples of two epochs, and may hold one of them twice, so that it comes to its cap later than by division.
TEST(PlanWork, CountsWhatTheRunMakes) {
  const std::string tiny =
      "model = 'mlp'\nmicro_batch = 4\ntarget_loss = 1e-9\ncheck_every = 13\n"
      "[data]\nset = 'synthetic'\ntrain_examples = 8\ntest_examples = 4\n[mlp]\nhidden = [2]\nactivation = "
      "'tanh'\n"
      "[runtime]\nprogress = false\n";
  for (const std::string settings :
       {"protocol = 'B'\nmax_gradients = 19\nbatch_size = 3\n",
        "protocol = 'B'\nmax_gradients = 40\nbatch_size = 20\n",
        "protocol = 'B'\nmax_gradients = 40\nbatch_size = 20\nduplicates = 'repeated'\n",
        "epochs = 2.5\nbatch_size = 3\n", "epochs = 6\nbatch_size = 4\nevaluate_every = 16\n",
        "epochs = 7\nbatch_size = 3\nevaluate_every = 10\nloss_levels = [1e-9]\n",
        "protocol = 'B'\nmax_gradients = 400\nbatch_size = 5\nevaluate_every = 70\n",
        "epochs = 4\nbatch_size = 2\nbatch_milestones = [0.5]\nbatch_factor = 3\n",
        "protocol = 'A-updates'\nupdates = 5\nbatch_size = 4\n"}) {
    SCOPED_TRACE(settings);
    const Cell cell = cell_of(settings + tiny);
    const testing::TemporaryFolder folder;
    const testing::Passes made = testing::counted([&] { train_run(cell.options, folder.path()); });
    const RunRecord run = read_run_file(folder / "run.h5");
    const CellWork work = plan_work(cell, {8, 0, 4}, false);
    EXPECT_EQ(static_cast<double>(work.updates), summary_of(run, "updates"));
    // A batch over the end of an epoch costs an image less for each that comes up twice in it: at most one per batch here.
    EXPECT_GE(work.gradients, summary_of(run, "gradients"));
    EXPECT_LE(work.gradients, summary_of(run, "gradients") + static_cast<double>(work.updates));
    EXPECT_EQ(summary_of(run, "gradients"), made.backward);
    // Four checks more are counted where a run comes near its target, if it has as many updates.
    const double denser = cell.options.train.ends_by(Protocol::matched_loss) ? 4 * 8 : 0;
    EXPECT_GE(work.forwards, made.forward - made.backward);
    EXPECT_LE(work.forwards, made.forward - made.backward + denser);
  }
}

// Every level is reached: the loss of 10 classes starts near 2.3.
TEST(PlanWork, CountsTheCheckpointsThatTheRunKeeps) {
  const std::string text =
      "model = 'mlp'\nmicro_batch = 4\nprotocol = 'A-updates'\nupdates = 6\nbatch_size = 4\ncheck_every = 4\n"
      "loss_levels = [30.0, 20.0]\ncheckpoint_every = 2\nweight_average = 0.5\n"
      "[data]\nset = 'synthetic'\ntrain_examples = 8\ntest_examples = 4\n[mlp]\nhidden = [2]\n"
      "[runtime]\nprogress = false\n[probes]\nrun = ['top_eigenvalues', 'sharpness_keskar']\n";
  const testing::TemporaryFolder folder;
  train_run(cell_of(text).options, folder.path());
  for (const std::string at :
       {"['end']", "['start', 'end']", "['loss']", "['every']", "['loss', 'every', 'end']", "['all']"}) {
    SCOPED_TRACE(at);
    const Cell cell = cell_of(fmt::format("{}at = {}\n", text, at));
    const double images =
        8.0 * static_cast<double>(chosen_labels(folder.path(), cell.options.probes.at).size());
    const CellWork work = plan_work(cell, {8, 0, 4}, true);
    EXPECT_DOUBLE_EQ(work.probe_gradients,
                     images * (expected_cost("sharpness_keskar", cell.options).gradients +
                               expected_cost("top_eigenvalues", cell.options).gradients));
    EXPECT_DOUBLE_EQ(work.probe_hvps, images * (expected_cost("sharpness_keskar", cell.options).hvps +
                                                expected_cost("top_eigenvalues", cell.options).hvps));
    EXPECT_EQ(plan_work(cell, {8, 0, 4}, false).probe_hvps, 0);
  }
}

TEST(PlanWork, RefusesASchedulePastItsEnd) {
  const std::string text = "epochs = 8\nbatch_size = 256\nschedule = 'cosine'\nhorizon = 0.5\n";
  EXPECT_THROW(plan_work(cell_of(text), kSizes, true), ConfigError);
  EXPECT_EQ(plan_work(cell_of(text + "final_factor = 0.1\n"), kSizes, true).updates, 157);
}

TEST(PlanWork, CountsTwoGradientsWithAPerturbation) {
  // In groups of 1,000 nothing comes up twice; a group of 8,192 costs the 5,000 images.
  const std::string text = "epochs = 16.384\nbatch_size = 8192\n[perturbation]\nkind = 'sam'\n";
  const CellWork whole = plan_work(cell_of(text), kSizes, false);
  EXPECT_EQ(whole.updates, 10);
  EXPECT_EQ(whole.images_per_update, 5000);
  EXPECT_EQ(whole.gradients, 10L * 2 * 5000);
  EXPECT_EQ(plan_work(cell_of(text + "examples = 1000\n"), kSizes, false).gradients, 10L * 2 * 8192);
  EXPECT_EQ(
      plan_work(
          cell_of(
              "protocol = 'B'\nmax_gradients = 10000\nbatch_size = 1000\n[perturbation]\nkind = 'asam'\n"),
          kSizes, false)
          .updates,
      5);
}

TEST(PlanWork, CountsGrowingBatches) {
  // 20,000 examples: half in batches of 100, half in 5,000. Evaluated at 4,000, 8,000 and 15,000; at the end, and the average.
  const CellWork work =
      plan_work(cell_of("epochs = 4\nbatch_size = 100\nbatch_milestones = [0.5]\nbatch_factor = 50\n"
                        "weight_average = 0.99\nevaluate_every = 4000\n"),
                kSizes, false);
  EXPECT_EQ(work.updates, 100 + 2);
  EXPECT_EQ(work.gradients, 20000);
  EXPECT_DOUBLE_EQ(work.images_per_update, 20000 / 102.0);
  EXPECT_EQ(work.forwards, 3 * 6000 + 2 * 6000);
}

TEST(PlanWork, CountsTheViewsOfTheTestImages) {
  const auto forwards = [](const std::string& views) {
    return plan_work(cell_of("test_time_augmentation = '" + views + "'\n"), kSizes, false).forwards;
  };
  EXPECT_EQ(forwards("flip") - forwards("none"), 2 * kSizes.test);
  EXPECT_EQ(forwards("flip_shift") - forwards("none"), 6 * kSizes.test);
}

TEST(PlanWork, RefusesMoreExamplesThanCanBeCounted) {
  const auto refusal = [](const std::string& text) {
    return testing::message_of([&] { plan_work(cell_of(text), kSizes, false); });
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal("protocol = 'A-updates'\nupdates = 9000000000000000\n"), HasSubstr("2^53"));
  // 2 x 10^11 updates, each of the 5,000 distinct images, are 2 x 10^17 examples of the stream.
  EXPECT_THAT(refusal("protocol = 'B'\nmax_gradients = 1000000000000000\nbatch_size = 1000000\n"),
              HasSubstr("2^53"));
  EXPECT_THAT(refusal("max_gradients = 9223372036854775807\n"),
              HasSubstr("violates max_gradients in [1, 9.0072e+15]"));
  EXPECT_THAT(refusal("protocol = 'B'\n[[sweep.expect]]\ngradients = 9223372036854775807\n"),
              HasSubstr("max_gradients"));
}

TEST(PlanWork, RefusesALookaheadLongerThanTheRun) {
  const std::string text = "epochs = 1\nbatch_size = 1000\nlookahead_every = ";  // 5 updates
  EXPECT_EQ(plan_work(cell_of(text + "5\n"), kSizes, false).updates, 5);
  EXPECT_THAT(testing::message_of([&] { plan_work(cell_of(text + "6\n"), kSizes, false); }),
              ::testing::HasSubstr("lookahead_every = 6"));
}

TEST(Calibrate, AFailureKeepsTheRoundFiguresAndNoFolder) {
  const testing::TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const Cell cell = cell_of("epochs = 1\n[data]\nset = 'synthetic'\n");
  CostModel costs({cell}, false);
  const double before = costs.seconds(cell.run_id);
  EXPECT_THROW(costs.calibrate({"/bin/false"}, 1, 1), NumericError);
  EXPECT_THROW(costs.calibrate({"/bin/true"}, 1, 1), IoError);  // leaves no measurement to read
  EXPECT_EQ(costs.seconds(cell.run_id), before);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ::unsetenv("TMPDIR");
}

TEST(PlanWork, BelievesTheStudysExpectation) {
  const CellWork work = plan_work(cell_of("protocol = 'B'\nmax_gradients = 300000\nbatch_size = 1000\n"
                                          "[[sweep.expect]]\ngradients = 20000\n"),
                                  kSizes, true);
  EXPECT_EQ(work.updates, 20);
  EXPECT_TRUE(work.gradients_expected);
}

TEST(UpdateSeconds, IsLinearBetweenAndBeyondTheMeasuredPoints) {
  CellSpeed speed;
  speed.batch = {10, 20, 40};
  speed.update_seconds = {2, 3, 7};
  EXPECT_DOUBLE_EQ(update_seconds(speed, 10), 2);
  EXPECT_DOUBLE_EQ(update_seconds(speed, 15), 2.5);
  EXPECT_DOUBLE_EQ(update_seconds(speed, 30), 5);
  EXPECT_DOUBLE_EQ(update_seconds(speed, 100), 19);
  speed.batch = {10};
  speed.update_seconds = {2};
  EXPECT_DOUBLE_EQ(update_seconds(speed, 40), 8);
}

TEST(ExpectedSeconds, AddsUpAllParts) {
  CellSpeed speed;
  speed.batch = {1};
  speed.update_seconds = {0.5};
  speed.start_up = 1;
  speed.forward = 0.25;
  speed.probe_gradient = 2;
  speed.probe_hvp = 3;
  CellWork work;
  work.updates = 10;
  work.images_per_update = 4;
  work.forwards = 8;
  work.probe_gradients = 5;
  work.probe_hvps = 6;
  EXPECT_DOUBLE_EQ(expected_seconds(work, speed), 1 + 10 * 2.0 + 2 + 10 + 18);
}

TEST(Makespan, FillsTheFirstFreeWorkerInOrder) {
  EXPECT_DOUBLE_EQ(makespan({3, 3, 2, 2, 2}, 2), 7);  // 3+2+2 and 3+2
  EXPECT_DOUBLE_EQ(makespan({1, 2, 3}, 1), 6);
  EXPECT_DOUBLE_EQ(makespan({1, 2, 3}, 9), 3);
  EXPECT_DOUBLE_EQ(makespan({1, 2, 3}, 2), 4);  // 1+3 and 2; the longest first would take 3
  EXPECT_DOUBLE_EQ(makespan({}, 2), 0);
}

TEST(CellSpeed, ReadsBackWhatItPrints) {
  CellSpeed speed;
  speed.batch = {32, 256};
  speed.update_seconds = {0.1, 1.0 / 3};
  speed.forward = 1e-5;
  const CellSpeed read = parse_speed(to_toml(speed), "speed.toml");
  EXPECT_EQ(read.batch, speed.batch);
  EXPECT_EQ(read.update_seconds, speed.update_seconds);
  EXPECT_EQ(read.forward, speed.forward);
}

TEST(SplitSizes, FallBackOnWhatIsPublished) {
  DataOptions options;
  options.set = "cifar10";
  options.path = "/nonexistent";
  options.validation = 0.1;
  std::string message;
  const SplitSizes sizes = split_sizes(options, message);
  EXPECT_EQ(sizes.train, 45000);
  EXPECT_EQ(sizes.validation, 5000);
  EXPECT_EQ(sizes.test, 10000);
  EXPECT_NE(message.find("/nonexistent"), std::string::npos);
}

}  // namespace
}  // namespace basin
