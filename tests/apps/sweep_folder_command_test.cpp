// `basin sweep` and the folder that it works in: whose study and data it holds, what it leaves alone there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/file_lock.h"
#include "core/files.h"
#include "core/provenance.h"
#include "io/run_file.h"
#include "tests/apps/tiny_sweep.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// No file of a run that has ended is worth training it again: status.json, the record, both, or the record torn.
TEST(SweepCommandFolder, WhatIsLostOfAnEndedRunIsMadeAgain) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  const std::string run = sweep.runs().front();
  const RunRecord before = read_run_file(run + "/run.h5");
  const auto trained = fs::last_write_time(run + "/journal");
  const std::vector<std::vector<std::string>> losses = {
      {"status.json"}, {"run.h5"}, {"status.json", "run.h5"}};
  for (const std::vector<std::string>& lost : losses) {
    for (const std::string& name : lost) fs::remove(run + "/" + name);
    const BinaryResult again = sweep.run({"--no-probes"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(sweep.statuses(), std::vector<std::string>{"finished"});
    EXPECT_EQ(comparable(read_run_file(run + "/run.h5")), comparable(before)) << lost.front();
    EXPECT_EQ(fs::last_write_time(run + "/journal"), trained) << lost.front();
  }
  truncate_file(run + "/run.h5", 0.5);
  fs::remove(run + "/status.json");
  EXPECT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  EXPECT_EQ(comparable(read_run_file(run + "/run.h5")), comparable(before));
  EXPECT_EQ(fs::last_write_time(run + "/journal"), trained);
}

TEST(SweepCommandFolder, RefusesAnotherStudyAndExtendsItsOwn) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  const BinaryResult other = sweep.run({"--no-probes", "--set", "updates=7"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds another study"));
  EXPECT_THAT(other.err, HasSubstr("updates = 20 there, 7 here"));
  EXPECT_THAT(other.err, Not(HasSubstr("--extend")));
  const BinaryResult more = sweep.run({"--no-probes", "--set", "seed=[1, 2]"});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("--extend"));
  EXPECT_THAT(more.err, HasSubstr("seed 2) is not in it"));
  const BinaryResult extended = sweep.run({"--no-probes", "--set", "seed=[1, 2]", "--extend"});
  EXPECT_EQ(extended.exit_code, 0) << extended.err;
  EXPECT_EQ(sweep.statuses().size(), 2u);
  // The frozen study is complete in itself.
  EXPECT_EQ(run_binary({"sweep", sweep.path("out/study.toml"), "--out", sweep.path("out"), "--no-probes"})
                .exit_code,
            0);
}

TEST(SweepCommandFolder, LeavesRunsOfSomethingElseOutOfItsTable) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n");
  const auto train = [&](const std::string& set) {
    return run_binary({"train", sweep.path("study.toml"), "--out", sweep.path("out"), "--set",
                       "runtime.threads=1", "--set", set});
  };
  ASSERT_EQ(train("updates=7").exit_code, 0);  // before the sweep: nothing of the study's
  const std::string before = sweep.runs()[0];
  ASSERT_EQ(train("seed=2").exit_code, 0);  // a cell of the study, which counts
  const BinaryResult result = sweep.run({"--no-probes"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("1 run was done before"));
  EXPECT_THAT(result.err, HasSubstr("left out: " + fs::path(before).filename().string()));
  ASSERT_EQ(train("updates=8").exit_code, 0);  // and after it
  const BinaryResult collected = run_binary({"collect", sweep.path("out")});
  EXPECT_THAT(collected.err, HasSubstr("2 runs of another study, left out: "));
  EXPECT_EQ(sweep.runs().size(), 4u);
  EXPECT_THAT(read_file(sweep.path("out/table.md")), HasSubstr("# Sweep: 2 runs"));
  EXPECT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
}

TEST(SweepCommandFolder, TakesOtherMicroBatchesOfProbesForTheSameStudy) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run().exit_code, 0);
  const auto written = fs::last_write_time(sweep.runs()[0] + "/probes/end.noise_scale.h5");
  const BinaryResult again = sweep.run({"--set", "probes.micro_batch=10", "--set", "probes.graph_memory=0",
                                        "--set", "probes.fold_norm=false"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("1 run was done before"));
  EXPECT_EQ(fs::last_write_time(sweep.runs()[0] + "/probes/end.noise_scale.h5"), written);
}

// data.path is no part of a run's id, so other images may lie there than those that a run was trained on.
TEST(SweepCommandFolder, RefusesRunsOfOtherData) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  const std::string path = sweep.runs()[0] + "/run.h5", other(64, 'f');
  RunRecord record = read_run_file(path);
  std::string ours;
  for (auto& [key, value] : record.header.data) {
    if (key == "sha256") ours = std::exchange(std::get<std::string>(value), other);
  }
  write_run_file(path, record);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--no-probes"}, {"--dry-run", "--no-probes"}}) {
    const BinaryResult result = sweep.run(arguments);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.err, ::testing::AllOf(HasSubstr(path), HasSubstr(other), HasSubstr(ours)));
  }
}

TEST(SweepCommandFolder, RefusesAFolderInUse) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  fs::create_directories(sweep.path("out"));
  const FileLock lock(sweep.path("out/lock"), "the test");
  const BinaryResult result = sweep.run();
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr(fmt::format("{}: in use by pid {} on host {}", sweep.path("out"),
                                                getpid(), host_name())));
}

TEST(SweepCommandFolder, BadStudiesMakeNoFolder) {
  const TinySweep sweep("[sweep]\nbatch_size = [0]\n");
  const BinaryResult result = sweep.run();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("batch_size = 0 violates batch_size >= 1"));
  EXPECT_FALSE(fs::exists(sweep.path("out")));
}

TEST(SweepCommandFolder, AStudyRefusedForItsSizesCanBeMended) {
  const TinySweep sweep("[sweep]\nbatch_size = [20, 32]\n");
  const BinaryResult refused = sweep.run({"--no-probes", "--set", "lookahead_every=21"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("B=20 "));
  EXPECT_THAT(refused.err, HasSubstr("lookahead_every = 21"));
  EXPECT_EQ(sweep.run({"--no-probes", "--set", "lookahead_every=20"}).exit_code, 0);
}

}  // namespace
}  // namespace basin::testing
