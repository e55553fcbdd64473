// `basin sweep --launch slurm` against programs of Slurm's names: what is submitted, in which order, and what comes out of it; refusals.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files.h"
#include "io/run_file.h"
#include "tests/apps/fake_slurm.h"
#include "tests/apps/tiny_sweep.h"
#include "tests/support/text_files.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> launch(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--launch", "slurm", "--jobs", "1"});
  return more;
}

TEST(SweepLaunch, MakesTheSweepInJobs) {
  const FakeSlurm slurm;
  const TinySweep sweep(kTwoByTwo);
  ASSERT_EQ(sweep.run().exit_code, 0);
  const BinaryResult result =
      sweep.run(launch({"--task-minutes", "0", "--slurm", "partition=main", "--slurm", "mem=1G"}), "jobs");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("job 101: sweep, 3 tasks for 4 runs"));
  EXPECT_EQ(slurm.submitted(), 1);
  EXPECT_THAT(slurm.arguments(101), HasSubstr("--time=8\n"));     // no more than the partition allows
  EXPECT_THAT(slurm.arguments(101), HasSubstr("--array=1-3\n"));  // MaxArraySize is 4
  EXPECT_THAT(slurm.arguments(101), HasSubstr("--partition=main\n--mem=1G\n"));
  EXPECT_THAT(result.out, HasSubstr("sweep.h5 and table.md are complete"));
  const std::vector<std::string> whole = sweep.runs(), jobs = sweep.runs("jobs/runs");
  ASSERT_EQ(jobs.size(), 4u);
  for (size_t i = 0; i < jobs.size(); ++i)
    EXPECT_EQ(comparable(read_run_file(jobs[i] + "/run.h5")),
              comparable(read_run_file(whole[i] + "/run.h5")));
  // Nothing is left: nothing is submitted.
  EXPECT_EQ(sweep.run(launch(), "jobs").exit_code, 0);
  EXPECT_EQ(slurm.submitted(), 1);
  EXPECT_THAT(sweep.run(launch({"--dry-run"}), "jobs").out, HasSubstr("nothing to submit"));
}

TEST(SweepLaunch, MakesParentsBeforeBranches) {
  const FakeSlurm slurm;
  const TinySweep sweep(
      "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nseed = [1, 2]\nbranch.from = ['', 'batch_size = 32']\n"
      "batch_size = [32]\n");
  const BinaryResult result = sweep.run(launch({"--no-probes", "--task-minutes", "0"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(slurm.submitted(), 2);
  EXPECT_THAT(slurm.arguments(101), Not(HasSubstr("dependency")));
  EXPECT_THAT(slurm.arguments(102), HasSubstr("--dependency=afterany:101\n"));
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(4, "finished"));
}

TEST(SweepLaunch, TunesRungByRung) {
  const FakeSlurm slurm;
  const TinySweep sweep(
      "[tune]\ntrials = 4\nhalving = 2\nseeds = [9]\n[[tune.range]]\nkey = 'learning_rate'\nlow = 0.01\nhigh "
      "= 0.1\n"
      "[sweep]\nseed = [1, 2]\n");
  const std::vector<std::string> tuned = {"--no-probes", "--set", "data.validation=0.2", "--set",
                                          "learning_rate='tuned'"};
  const BinaryResult alone = sweep.run(tuned, "alone");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  std::vector<std::string> in_jobs = launch({"--task-minutes", "0"});
  in_jobs.insert(in_jobs.end(), tuned.begin(), tuned.end());
  const BinaryResult result = sweep.run(in_jobs);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(slurm.submitted(), 3);
  EXPECT_EQ(read_file(sweep.path("out/selection.toml")), read_file(sweep.path("alone/selection.toml")));
  const std::vector<std::string> jobs = sweep.runs(), whole = sweep.runs("alone/runs");
  ASSERT_EQ(jobs.size(), whole.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    EXPECT_EQ(fs::path(jobs[i]).filename(), fs::path(whole[i]).filename());
  // A stage after the tuning can't be made before it.
  std::vector<std::string> last_stage = {"--stage", "3", "--shard", "1/1"};
  last_stage.insert(last_stage.end(), tuned.begin(), tuned.end());
  const BinaryResult early = sweep.run(last_stage, "early");
  EXPECT_EQ(early.exit_code, 2);
  EXPECT_THAT(early.err, HasSubstr("--stage 3 (sweep): the tuning before it has not ended"));
}

TEST(SweepLaunch, AsksForTheCoresOfAllRanks) {
  const FakeSlurm slurm;
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const BinaryResult result = sweep.run(launch({"--dry-run", "--threads", "3", "--ranks", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("--cpus-per-task=6"));
  EXPECT_THAT(result.out, HasSubstr("--threads 3 --ranks 2"));
}

TEST(SweepLaunch, TriesAFailedRunOnceMore) {
  if (at::hasCUDA()) GTEST_SKIP() << "no device is missing here";
  const FakeSlurm slurm;
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const BinaryResult result = sweep.run(launch({"--no-probes", "--set", "runtime.device=cuda"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("1 run without a result"));
  EXPECT_EQ(slurm.requeued(), "101_1\n");
  // As Slurm would start it again: it tries, fails, and that is that.
  slurm.run_again(sweep.path("out/slurm/stage-1.sh"), "101", "1");
  EXPECT_EQ(slurm.requeued(), "101_1\n");
  EXPECT_EQ(read_file(sweep.path("out/slurm/101_1.again")), "tried\n");
}

TEST(SweepLaunch, GoesOnAfterATrialThatFailed) {
  const FakeSlurm slurm;
  const TinySweep sweep(
      "[tune]\ntrials = 3\nseeds = [9]\n[[tune.range]]\nkey = 'learning_rate'\nlow = 0.01\nhigh = 0.1\n"
      "[sweep]\nseed = [1, 2]\n");
  const std::vector<std::string> tuned = {"--no-probes", "--set", "data.validation=0.2", "--set",
                                          "learning_rate='tuned'"};
  const auto stage = [&](const char* number) {
    std::vector<std::string> arguments = {"--stage", number, "--shard", "1/1"};
    arguments.insert(arguments.end(), tuned.begin(), tuned.end());
    return sweep.run(arguments);
  };
  ASSERT_EQ(stage("1").exit_code, 0);
  const std::string status = sweep.runs("out/tuning")[0] + "/status.json";
  std::string text = read_file(status);
  text.replace(text.find("finished"), 8, "failed");
  write_text(status, text);
  const BinaryResult result = stage("2");
  EXPECT_EQ(result.exit_code, 1) << result.err;  // of the trial, in the end
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(2, "finished"));
}

TEST(SweepLaunch, SubmitsOnceAndCancels) {
  const FakeSlurm slurm;
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n[[sweep.set]]\nset = { updates = 5 }\n");
  ASSERT_EQ(sweep.run(launch({"--no-probes", "--detach"})).exit_code, 0);
  // As if its tasks had not ended, and somebody else's.
  slurm.set_queue(
      "101|PENDING|Resources|basin-study-1\n101|RUNNING|None|basin-study-1\n7|RUNNING|None|basin-study-1\n"
      "101|RUNNING|None|another's\n");
  const BinaryResult again = sweep.run(launch({"--no-probes", "--detach"}));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("2 tasks of an earlier call are in the queue: nothing is submitted"));
  EXPECT_EQ(slurm.submitted(), 1);
  const BinaryResult cancelled = sweep.run(launch({"--cancel"}));
  EXPECT_EQ(cancelled.exit_code, 0);
  EXPECT_THAT(cancelled.err, HasSubstr("cancelled: 2 tasks of 1 job"));
  EXPECT_EQ(slurm.queue(), "");
  EXPECT_THAT(sweep.run(launch({"--cancel"})).err, HasSubstr("the queue has no job of this sweep"));
}

TEST(SweepLaunch, ShowsWhatItWouldSubmit) {
  const FakeSlurm slurm;
  const TinySweep sweep(kTwoByTwo);
  const BinaryResult result = sweep.run(launch({"--dry-run", "--task-minutes", "0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stage 1 (sweep): 4 runs in 3 tasks"));
  EXPECT_THAT(result.out, HasSubstr("# sbatch --job-name=basin-study-1 --array=1-3 "));
  EXPECT_THAT(result.out, HasSubstr("core-hours"));
  EXPECT_EQ(slurm.submitted(), 0);
  EXPECT_FALSE(fs::exists(sweep.path("out")));
}

TEST(SweepLaunch, IsRefusedInOneLine) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const auto refusal = [&](const std::vector<std::string>& more) {
    const BinaryResult result = sweep.run(launch(more));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  {
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", sweep.path("nothing").c_str(), 1);
    EXPECT_THAT(refusal({}), HasSubstr("there is no sbatch in PATH"));
    ::setenv("PATH", path.c_str(), 1);
  }
  const FakeSlurm slurm;
  EXPECT_THAT(refusal({"--slurm", "partition=nowhere"}),
              HasSubstr("stage-1.sh: sbatch: invalid partition specified: nowhere"));
  EXPECT_THAT(refusal({"--slurm", "array=1-4"}), HasSubstr("--slurm array=1-4: this one is set by Basin"));
  EXPECT_THAT(refusal({"--slurm", "wrap=true", "--dry-run"}), HasSubstr("this one is set by Basin"));
  EXPECT_THAT(refusal({"--task-minutes", "-5"}),
              HasSubstr("--task-minutes: \"-5\" is no number of at least 0"));
  EXPECT_THAT(refusal({"--cancel", "--dry-run"}), HasSubstr("excludes"));
  EXPECT_THAT(refusal({"--shard", "1/2"}), HasSubstr("--shard excludes --launch"));
  ::setenv("SLURM_JOB_ID", "12", 1);
  EXPECT_THAT(refusal({}), HasSubstr("this is inside job 12 already"));
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(slurm.submitted(), 0);
}

TEST(SweepLaunch, LeavesNothingWhereSlurmDoesNotAnswer) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const FakeSlurm slurm;
  slurm.lose_queue();
  const BinaryResult result = sweep.run(launch());
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("squeue"));
  EXPECT_FALSE(fs::exists(sweep.path("out")));
}

TEST(SweepStatus, SaysHowTheRunsStand) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n[[sweep.set]]\nset = { updates = 5 }\n");
  const auto status = [&] { return run_binary({"status", sweep.path("out")}); };
  EXPECT_EQ(status().exit_code, 4);
  EXPECT_THAT(status().err, HasSubstr("no folder of a sweep"));
  ASSERT_EQ(sweep.run({"--no-probes", "--cell", "1"}).exit_code, 0);
  EXPECT_THAT(status().out,
              HasSubstr(": 2 runs, 0 done, 0 at work, 0 failed, 2 waiting\n"));  // probes are missing
  ASSERT_EQ(sweep.run({"--cell", "1"}).exit_code, 0);
  EXPECT_THAT(status().out, HasSubstr(": 2 runs, 1 done, 0 at work, 0 failed, 1 waiting\n"));
}

}  // namespace
}  // namespace basin::testing
