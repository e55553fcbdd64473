// `basin sweep` from outside: what it leaves, how it goes on, what one bad cell does to the others.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "core/files.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "tests/apps/tiny_sweep.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SweepCommand, DryRunListsEveryCellWithItsCostAndMakesNothing) {
  const TinySweep sweep(kTwoByTwo + "batch_size = [32, 1024]\n");
  const BinaryResult result = sweep.run({"--dry-run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("8 runs, 18560 image gradients"));  // 4 x 20 updates of 32 and of 200 distinct images
  const std::string promise = "expected wall time with 2 workers of 1 thread: ";
  ASSERT_THAT(result.out, HasSubstr(promise));
  const size_t open = result.out.find('(', result.out.find(promise) + promise.size());
  const double seconds = std::stod(result.out.substr(open + 1));
  // Four runs of 20 updates per worker on a tiny network, each with its start-up of a tenth of a second or more.
  EXPECT_GT(seconds, 0.1);
  EXPECT_LT(seconds, 300);
  EXPECT_FALSE(fs::exists(sweep.path("out")));
}

TEST(SweepCommand, DryRunCountsTheProbesOfACadence) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const auto seconds = [&](const std::string& every) {
    const BinaryResult result =
        sweep.run({"--dry-run", "--set", "checkpoint_every=" + every, "--set", "probes.at=[\"every\"]"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  // The column of the probes' cost: 20 updates, so 4 checkpoints or 20.
  const std::string few = seconds("5"), many = seconds("1");
  EXPECT_THAT(few, HasSubstr("1 run,"));
  EXPECT_NE(few.substr(0, few.find("gradients:")), many.substr(0, many.find("gradients:")));
}

TEST(SweepCommand, TrainsProbesAndCollectsAndThenHasNothingLeftToDo) {
  const TinySweep sweep(kTwoByTwo);
  const BinaryResult first = sweep.run();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(4, "finished"));
  EXPECT_TRUE(fs::exists(sweep.path("out/sweep.h5")));
  EXPECT_TRUE(fs::exists(sweep.path("out/table.md")));
  EXPECT_THAT(first.err, HasSubstr("[4/4]"));
  EXPECT_THAT(first.err, Not(HasSubstr("\033")));  // piped: no terminal codes

  const std::string run = sweep.runs()[0];
  const auto written = fs::last_write_time(run + "/run.h5");
  fs::remove(run + "/probes/end.noise_scale.h5");
  // As a process that was killed at its very end leaves them.
  for (const std::string& folder : sweep.runs()) write_text(folder + "/ckpt/latest.h5", "");
  EXPECT_THAT(sweep.run({"--dry-run"}).out, HasSubstr("3 of them are done in " + sweep.path("out")));
  const BinaryResult second = sweep.run();
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("3 runs were done before"));
  EXPECT_TRUE(fs::exists(
      run + "/probes/end.noise_scale.h5"));  // a probe that is missing is done, the training is not
  EXPECT_EQ(fs::last_write_time(run + "/run.h5"), written);
  for (const std::string& folder : sweep.runs())
    EXPECT_FALSE(fs::exists(folder + "/ckpt/latest.h5")) << folder;

  const BinaryResult dry = sweep.run({"--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("4 of them are done in " + sweep.path("out")));
  EXPECT_THAT(dry.out, HasSubstr("of 1 thread: 0 s (0 s)"));
  const BinaryResult foreign = sweep.run({"--dry-run", "--set", "updates=7"});
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_THAT(foreign.err, HasSubstr("holds another study"));
}

TEST(SweepCommand, ProbesWhatWasTrainedWithout) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(sweep.runs()[0] + "/probes/end.noise_scale.h5"));
  ASSERT_EQ(sweep.run().exit_code, 0);
  EXPECT_TRUE(fs::exists(sweep.runs()[0] + "/probes/end.noise_scale.h5"));
}

// One cell wants a device that isn't there, until --set runtime.device=cpu, which is no part of the study, mends it.
const std::string kOneCellWithoutDevice =
    "[sweep]\nbatch_size = [16, 32, 64]\n[[sweep.set]]\nwhen = { batch_size = 32 }\nset = { runtime.device = "
    "'cuda' }\n";
const std::string kNoDevice = "no CUDA device";

TEST(SweepCommand, AFailedCellLeavesTheOthersAloneAndIsRetriedOnRequest) {
  if (at::hasCUDA()) GTEST_SKIP() << "no device is missing here";
  const TinySweep sweep(kOneCellWithoutDevice);
  const BinaryResult first = sweep.run();
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_THAT(first.err, HasSubstr(kNoDevice));
  std::vector<std::string> statuses = sweep.statuses();
  std::sort(statuses.begin(), statuses.end());
  EXPECT_EQ(statuses, (std::vector<std::string>{"failed", "finished", "finished"}));
  EXPECT_TRUE(fs::exists(sweep.path("out/sweep.h5")));

  const BinaryResult second = sweep.run();  // without being asked it isn't run again
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("failed before"));
  const BinaryResult third = sweep.run({"--retry", "failed", "--set", "runtime.device=cpu"});
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(3, "finished"));
}

// The embedded images; 20 updates of 32 of them.
const std::string kEmbedded =
    "[sweep]\nseed = [1, 2]\n[[sweep.set]]\nset = { data.set = 'cifar10-5k', data.train_examples = 0, "
    "data.test_examples = 0 }\n";

// With BASIN_DATA naming this folder.
BinaryResult run_with_data(const TinySweep& sweep, const std::string& folder) {
  ::setenv("BASIN_DATA", folder.c_str(), 1);
  const BinaryResult result = sweep.run({"--no-probes"});
  ::unsetenv("BASIN_DATA");
  return result;
}

TEST(SweepCommandData, BadDataIsOneLineBeforeAnythingIsMade) {
  const TinySweep sweep(kEmbedded);
  const auto expect_refused = [&](const std::string& folder, const std::string& words) {
    const BinaryResult result = run_with_data(sweep, folder);
    EXPECT_EQ(result.exit_code, 3) << words;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(sweep.path("out"))) << words;
  };
  expect_refused("/nonexistent", "missing data");
  // Files of the right name and another size or content.
  const fs::path copy = sweep.path("data/cifar10-5k");
  fs::create_directories(copy);
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"})
    write_file((copy / name).string(), std::string(3073 * (name[0] == 'd' ? 5000 : 1000), '\1'));
  expect_refused(sweep.path("data"), "data_batch_1.bin: ");
  fs::resize_file(copy / "data_batch_1.bin", 3073 * 4999 + 7);
  expect_refused(sweep.path("data"), "data_batch_1.bin");
}

TEST(SweepCommandData, WhatIsDoneNeedsItsDataNoMore) {
  const TinySweep sweep(kEmbedded);
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  const BinaryResult done = run_with_data(sweep, "/nonexistent");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("note: missing data"));
}

TEST(SweepCommand, FailFastStopsAtTheFirstFailure) {
  // The others would take hours: only stopping them ends this sweep.
  if (at::hasCUDA()) GTEST_SKIP() << "no device is missing here";
  const TinySweep sweep(kOneCellWithoutDevice +
                        "[[sweep.set]]\nwhen = { batch_size = [16, 64] }\nset = { updates = 100000000 }\n");
  // With three workers the cell that fails runs along with others.
  const BinaryResult result = sweep.run({"--jobs", "3", "--fail-fast", "--no-probes"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--fail-fast: stopping"));
  EXPECT_THAT(result.err, HasSubstr("1 run without a result:"));
  std::vector<std::string> statuses = sweep.statuses();
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "failed"), 1);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "finished"), 0);
}

TEST(SweepCommand, FailFastNamesWhatFailedInTuning) {
  if (at::hasCUDA()) GTEST_SKIP() << "no device is missing here";
  const TinySweep sweep(
      "[sweep]\nlearning_rate = [0.01, 0.05]\nselect = 'validation_loss'\n[[sweep.set]]\nset = { "
      "runtime.device = 'cuda' }\n");
  const BinaryResult result = sweep.run({"--fail-fast", "--no-probes"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("without a result:"));
  EXPECT_THAT(result.err, HasSubstr(kNoDevice));
  EXPECT_FALSE(fs::exists(sweep.path("out/selection.toml")));
}

// A sweep of a second that the round figures take for more than a minute, so that it is calibrated first.
const std::string kWorthCalibrating =
    "[sweep]\nseed = [1]\n[[sweep.set]]\nset = { updates = 2500, evaluate_every = 32 }\n";

TEST(SweepCommand, GoesOnWithoutAForecast) {
  const TinySweep sweep(kWorthCalibrating);
  ::setenv("TMPDIR", "/nonexistent", 1);
  const BinaryResult result = sweep.run({"--no-probes"});
  ::unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: no measurements from this machine"));
  EXPECT_THAT(result.err, HasSubstr("from rough figures"));
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(1, "finished"));
}

TEST(SweepCommand, ForecastsMeasuresAndLeavesNothingBehind) {
  const TinySweep sweep(kWorthCalibrating);
  fs::create_directories(sweep.path("tmp"));
  ::setenv("TMPDIR", sweep.path("tmp").c_str(), 1);
  const BinaryResult result = sweep.run({"--no-probes"});
  ::unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::ContainsRegex("wall time [0-9].*; the forecast was [0-9]"));
  EXPECT_THAT(result.err, Not(HasSubstr("rough figures")));
  EXPECT_TRUE(fs::is_empty(sweep.path("tmp")));
}

TEST(SweepCommand, CtrlCEndsADryRunInItsMeasurement) {
  const TinySweep sweep(kWorthCalibrating);
  fs::create_directories(sweep.path("tmp"));
  ::setenv("TMPDIR", sweep.path("tmp").c_str(), 1);
  RunningBinary process(sweep.arguments({"--dry-run"}));
  ::unsetenv("TMPDIR");
  while (process.alive() && fs::is_empty(sweep.path("tmp")))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto start = std::chrono::steady_clock::now();
  process.send(SIGINT);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  // It looks at the signal five times a second; a loaded machine may take a while to end the processes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(fs::is_empty(sweep.path("tmp")));
}

TEST(SweepCommand, WorkersHaveOneThreadUnlessTold) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const auto promise = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--dry-run", "--jobs", "1", "--no-probes"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sweep.run(arguments).out;
  };
  EXPECT_THAT(promise({}), HasSubstr("1 worker of 1 thread:"));
  EXPECT_THAT(promise({"--set", "runtime.threads=2"}), HasSubstr("1 worker of 2 threads"));
  EXPECT_THAT(promise({"--threads", "3", "--set", "runtime.threads=2"}), HasSubstr("1 worker of 3 threads"));
}

TEST(SweepCommand, ADryRunDoesWithoutTheDataButNotWithoutItsPath) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const BinaryResult gone =
      sweep.run({"--dry-run", "--no-probes", "--set", "data.set=cifar10", "--set", "data.path=/nonexistent"});
  EXPECT_EQ(gone.exit_code, 0) << gone.err;
  EXPECT_THAT(gone.err,
              HasSubstr("/nonexistent does not exist; the cost assumes the published size of cifar10"));
  const BinaryResult unnamed = sweep.run({"--dry-run", "--no-probes", "--set", "data.set=cifar10"});
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("data.path is empty"));
}

// The pid of a worker that is training.
pid_t training_worker(const TinySweep& sweep) {
  for (int i = 0; i < 3000; ++i) {
    for (const Worker& worker : live_workers(sweep.path("out"))) {
      if (worker.training) return worker.pid;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("no worker began to train");
}

TEST(SweepCommand, AKilledWorkerTakesDownItsCellAlone) {
  const TinySweep sweep(
      "[sweep]\nseed = [1, 2]\n[[sweep.set]]\nwhen = { seed = 1 }\nset = { updates = 3000 }\n");
  RunningBinary process(sweep.arguments());
  kill(training_worker(sweep), SIGKILL);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("killed by signal 9"));
  std::vector<std::string> statuses = sweep.statuses();
  std::sort(statuses.begin(), statuses.end());
  EXPECT_EQ(statuses, (std::vector<std::string>{"failed", "finished"}));
  EXPECT_EQ(sweep.run({"--retry", "failed"}).exit_code, 0);
}

// Whatever the sweep did with the data before: a thread of torch's would make it execute each worker, which costs half a
// second a run. 40,000 numbers are enough for torch to wake its threads.
TEST(SweepCommand, WorkersAreForks) {
  if (at::hasCUDA()) GTEST_SKIP() << "a fork can't use CUDA: workers are executed here";
  const TinySweep sweep("[sweep]\nseed = [1, 2]\nupdates = [3000]\n");
  RunningBinary process(
      sweep.arguments({"--set", "data.validation=0.1", "--set", "data.train_examples=40000", "--no-probes"}));
  const std::string command = read_file("/proc/" + std::to_string(training_worker(sweep)) + "/cmdline");
  process.send(SIGTERM);
  process.wait();
  EXPECT_THAT(command, HasSubstr(std::string("sweep") + '\0'));
}

TEST(SweepCommand, DivergenceIsAResult) {
  const TinySweep sweep("[sweep]\nlearning_rate = [0.05, 1e9]\n");
  const BinaryResult result = sweep.run({"--no-probes"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> statuses = sweep.statuses();
  std::sort(statuses.begin(), statuses.end());
  EXPECT_EQ(statuses, (std::vector<std::string>{"diverged", "finished"}));
  EXPECT_THAT(result.err, ::testing::ContainsRegex("diverged  [0-9.]+ s  \\(.*loss.*\\)\n"));
}

TEST(SweepCommand, SaysWhatARunCameToAndEndsWithTheTable) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const BinaryResult result = sweep.run({"--no-probes"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const RunRecord record = read_run_file(sweep.runs()[0] + "/run.h5");
  const auto number = [&](const std::string& wanted) -> double {
    for (const auto& [key, value] : record.summary)
      if (key == wanted) return std::get<double>(value);
    return NAN;
  };
  EXPECT_THAT(result.err, HasSubstr(fmt::format("  training loss {:.4g}, test accuracy {:.1f} %\n",
                                                number("train_loss"), 100 * number("test_acc"))));
  EXPECT_THAT(result.out, HasSubstr("batch size  optimiser  learning rate  runs        test accuracy, %"));
  EXPECT_THAT(result.out, HasSubstr(fmt::format("{:.4g} (1)", 100 * number("test_acc"))));
  EXPECT_THAT(result.out, ::testing::HasSubstr(
                              "sweep.h5 and table.md are complete; for a report: python -m basin.report"));
}

TEST(SweepCommand, WarnsWhereProbesCostMoreThanTraining) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const std::string warning = "note: the probes cost more than the training: ";
  // Twenty eigenvalues on 2,000 examples take longer than a process and one update of 32, and less than 20,000 of them.
  EXPECT_THAT(sweep
                  .run({"--dry-run", "--set", "updates=1", "--set", "data.train_examples=2000", "--set",
                        "probes.subset=0", "--set", "top_eigenvalues.count=20"})
                  .out,
              HasSubstr(warning));
  EXPECT_THAT(sweep.run({"--dry-run", "--set", "updates=20000"}).out, Not(HasSubstr(warning)));
  EXPECT_THAT(sweep.run({"--dry-run", "--set", "updates=1", "--no-probes"}).out, Not(HasSubstr(warning)));
}

TEST(SweepCommand, ChoosesLearningRatesFirstAndKeepsTheOthersApart) {
  // 1e-6 leaves the network untrained and 1e9 diverges: 0.05 is the choice whatever the details.
  const TinySweep sweep(
      "[sweep]\nseed = [1, 2]\nlearning_rate = [1e-6, 0.05, 1e9]\nselect = 'validation_loss'\n", "");
  const BinaryResult result = sweep.run({"--no-probes"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(sweep.path("out/selection.toml")), HasSubstr("learning_rate = 0.05\n"));
  ASSERT_EQ(sweep.runs().size(), 2u);
  for (const std::string& run : sweep.runs()) {
    EXPECT_THAT(read_file(run + "/config.toml"), HasSubstr("learning_rate = 0.05\n"));
    EXPECT_THAT(read_file(run + "/config.toml"), HasSubstr("validation = 0.1\n"));
  }
  EXPECT_EQ(sweep.runs("out/tuning").size(), 2u);
  const BinaryResult again = sweep.run({"--no-probes"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("tuning: 3 runs were done before"));
  const BinaryResult dry = sweep.run({"--dry-run", "--no-probes"});
  EXPECT_THAT(dry.out, HasSubstr("the others are listed with the chosen rates"));
  EXPECT_THAT(dry.out,
              HasSubstr("4 of them are done in "));  // three rates at seed 1 and the chosen one at seed 2
  EXPECT_THAT(dry.out, HasSubstr("0 s (0 s)"));
}

}  // namespace
}  // namespace basin::testing
