// `basin sweep --shard` and `--cell`: processes that share one OUT, at once, one after another, killed, and with runs that fail.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "core/file_lock.h"
#include "core/files.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "tests/apps/tiny_sweep.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(SweepShards, MakeTheSweepInOneFolder) {
  const TinySweep sweep(kTwoByTwo);
  ASSERT_EQ(sweep.run().exit_code, 0);
  ASSERT_EQ(sweep.run({"--shard", "1/3"}, "parts").exit_code, 0);
  EXPECT_FALSE(fs::exists(sweep.path("parts/sweep.h5")));
  // Both others at once, and one of them twice.
  RunningBinary second(sweep.arguments({"--shard", "2/3"}, "parts"));
  RunningBinary third(sweep.arguments({"--shard", "3/3"}, "parts"));
  RunningBinary again(sweep.arguments({"--shard", "2/3"}, "parts"));
  for (RunningBinary* process : {&second, &third, &again}) {
    const BinaryResult result = process->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  ASSERT_TRUE(fs::exists(sweep.path("parts/sweep.h5")));
  const std::vector<std::string> whole = sweep.runs(), parts = sweep.runs("parts/runs");
  ASSERT_EQ(parts.size(), 4u);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(fs::path(parts[i]).filename(), fs::path(whole[i]).filename());
    EXPECT_EQ(comparable(read_run_file(parts[i] + "/run.h5")),
              comparable(read_run_file(whole[i] + "/run.h5")));
  }
  EXPECT_THAT(read_file(sweep.path("parts/table.md")), HasSubstr("# Sweep: 4 runs"));
}

TEST(SweepShards, BeginInOneFolderAtOnce) {
  const TinySweep sweep(kTwoByTwo);
  for (const std::string out : {"a", "b", "c"}) {
    std::vector<std::unique_ptr<RunningBinary>> processes;
    for (int i = 0; i < 3; ++i)
      processes.push_back(
          std::make_unique<RunningBinary>(sweep.arguments({"--no-probes", "--cell", "3"}, out)));
    for (const auto& process : processes) {
      const BinaryResult result = process->wait();
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_EQ(sweep.runs(out + "/runs").size(), 1u);
  }
}

TEST(SweepShards, ACellIsMadeAloneAndTheLastCollects) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const BinaryResult listed = sweep.run({"--no-probes", "--cell", "2", "--dry-run"});
  EXPECT_THAT(listed.out, HasSubstr("1 run, "));
  const BinaryResult first = sweep.run({"--no-probes", "--cell", "2"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("left to others: 1 run;"));
  ASSERT_EQ(sweep.runs().size(), 1u);
  EXPECT_THAT(read_file(sweep.runs()[0] + "/config.toml"), HasSubstr("seed = 2"));
  EXPECT_THAT(listed.out, HasSubstr(fs::path(sweep.runs()[0]).filename().string()));
  EXPECT_EQ(sweep.run({"--no-probes", "--cell", "1"}).exit_code, 0);
  EXPECT_THAT(read_file(sweep.path("out/table.md")), HasSubstr("# Sweep: 2 runs"));
}

TEST(SweepShards, CountFromOne) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  const BinaryResult result = sweep.run({"--cell", "0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--cell: \"0\" is no number above 0"));
}

TEST(SweepShards, MayHaveNoRuns) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  for (const char* shard : {"1/2", "2/2"}) {
    const BinaryResult result = sweep.run({"--no-probes", "--shard", shard});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_THAT(read_file(sweep.path("out/table.md")), HasSubstr("# Sweep: 1 run"));
}

TEST(SweepShards, ABranchNeedsItsParentFirst) {
  const TinySweep sweep(
      "[branch]\nat = 'end'\nupdates = 5\n[sweep]\nbatch_size = [32]\nbranch.from = ['', 'batch_size = "
      "32']\n");
  const BinaryResult early = sweep.run({"--no-probes", "--cell", "2"});
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_THAT(early.err, ::testing::ContainsRegex("run its parent [0-9a-f]+ first"));
  for (const char* cell : {"1", "2"}) {
    const BinaryResult result = sweep.run({"--no-probes", "--cell", cell});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  // Shards have both or neither.
  EXPECT_EQ(sweep.run({"--no-probes", "--shard", "1/2"}, "shard").exit_code, 0);
  EXPECT_EQ(sweep.runs("shard/runs").size(), 2u);
}

TEST(SweepShards, ARunThatFailedDoesNotKeepTheLastFromCollecting) {
  if (at::hasCUDA()) GTEST_SKIP() << "no device is missing here";
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const BinaryResult failing = sweep.run({"--no-probes", "--cell", "1", "--set", "runtime.device=cuda"});
  EXPECT_EQ(failing.exit_code, 1);
  EXPECT_FALSE(fs::exists(sweep.path("out/table.md")));
  const BinaryResult last = sweep.run({"--no-probes", "--cell", "2"});
  EXPECT_EQ(last.exit_code, 1);
  EXPECT_THAT(last.err, HasSubstr("1 run of other parts: see table.md"));
  EXPECT_THAT(read_file(sweep.path("out/table.md")), HasSubstr("# Sweep: 2 runs"));
  // It failed in the second in which the next try begins, or on a host whose clock is fast.
  for (const std::string& run : sweep.runs()) {
    RunStatus status = read_status(run + "/status.json");
    status.updated_utc = "2099-01-01T00:00:00Z";
    write_status(run + "/status.json", status);
  }
  const BinaryResult again = sweep.run({"--no-probes", "--cell", "1", "--retry", "failed"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST(SweepShards, AKilledOneIsTakenOver) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n[[sweep.set]]\nset = { updates = 3000 }\n");
  RunningBinary process(sweep.arguments({"--no-probes", "--shard", "1/1", "--jobs", "1"}));
  const auto works = [&] {
    for (const Worker& worker : live_workers(sweep.path("out")))
      if (worker.training) return true;
    return false;
  };
  while (process.alive() && !works()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  RunningBinary other(sweep.arguments({"--no-probes", "--cell", "1"}));
  process.send(SIGKILL);
  const BinaryResult result = other.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(sweep.run({"--no-probes", "--cell", "2"}).exit_code, 0);
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(2, "finished"));
}

TEST(SweepShards, AndAWholeSweepKeepOutOfEachOthersWay) {
  const TinySweep sweep(kTwoByTwo);
  fs::create_directories(sweep.path("out"));
  {
    const FileLock lock(sweep.path("out/lock"), "the test");
    const BinaryResult part = sweep.run({"--shard", "1/2"});
    EXPECT_EQ(part.exit_code, 4);
    EXPECT_THAT(part.err, HasSubstr(fmt::format("in use by pid {}", getpid())));
  }
  const FileLock lock = FileLock::share(sweep.path("out/lock"), "the test");
  const BinaryResult whole = sweep.run();
  EXPECT_EQ(whole.exit_code, 4);
  EXPECT_THAT(whole.err, HasSubstr("in use by another process"));
}

TEST(SweepShards, AreRefusedWhereThereIsNone) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const auto refusal = [&](const std::vector<std::string>& more) {
    const BinaryResult result = sweep.run(more);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_THAT(refusal({"--shard", "3/2"}), HasSubstr("--shard 3/2: not I/N"));
  EXPECT_THAT(refusal({"--shard", ""}), HasSubstr("--shard"));
  EXPECT_THAT(refusal({"--cell", "3"}), HasSubstr("--cell 3: the study has 2 runs"));
  EXPECT_THAT(refusal({"--cell", "0"}), HasSubstr("--cell"));
  EXPECT_THAT(refusal({"--stage", "2", "--shard", "1/2"}), HasSubstr("--stage 2: the study has 1 stage"));
  EXPECT_THAT(refusal({"--stage", "1"}), HasSubstr("--stage"));
  EXPECT_THAT(refusal({"--cell", "1", "--shard", "1/2"}), HasSubstr("--shard"));
  EXPECT_FALSE(fs::exists(sweep.path("out")));
  const TinySweep tuned(
      "[tune]\ntrials = 2\nseeds = [9]\n[[tune.range]]\nkey = 'learning_rate'\nlow = 0.01\nhigh = 0.1\n");
  const BinaryResult result =
      tuned.run({"--shard", "1/2", "--set", "data.validation=0.1", "--set", "learning_rate='tuned'"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a study that tunes is made in parts stage by stage"));
}

}  // namespace
}  // namespace basin::testing
