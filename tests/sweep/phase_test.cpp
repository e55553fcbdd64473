// Cells that need other runs first: they begin when these are final, and a parent that fails costs a line, not a sweep that
// hangs. The workers are shell scripts, so that nothing is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "core/file_lock.h"
#include "core/files.h"
#include "core/provenance.h"
#include "runs/folder.h"
#include "sweep/claims.h"
#include "sweep/phase.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Lines : SweepObserver {
  std::vector<std::string> lines;
  std::vector<SweepState> states;
  void begin(const std::string& /*what*/) override {}
  void announce(const std::string& line) override { lines.push_back(line); }
  void update(const SweepState& state) override { states.push_back(state); }
  void end() override {}
};

class CellsWithParents : public ::testing::Test {
 protected:
  CellsWithParents() {
    // Notes that it began and ended, and says that its run finished unless a file FOLDER/fail stands there.
    const std::string script = folder_ / "worker";
    write_file_atomically(script,
                          "#!/bin/sh\nid=$(basename $2)\necho begin $id >> $2/../../log\nsleep 0.3\n"
                          "echo end $id >> $2/../../log\n[ -e $2/fail ] && { echo basin: broke; exit 1; }\n"
                          "sed -i -E 's/queued|failed/finished/' $2/status.json\ntouch $2/run.h5\n");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    make_folders(folder_ / "runs");
    options_.program.path = script;
    options_.jobs = 2;
    options_.probes = false;
  }

  // Runs a, b, c, ... with the parents that each has.
  PhaseResult run(const std::vector<std::vector<std::string>>& parents) {
    std::vector<PlacedCell> placed;
    for (size_t i = 0; i < parents.size(); ++i) {
      Cell cell;
      cell.options.data.set = "synthetic";
      cell.run_id = cell.label = std::string(1, static_cast<char>('a' + i));
      cell.parents = parents[i];
      placed.push_back({cell, folder_ / "runs/" + cell.run_id});
    }
    std::vector<Cell> cells;
    for (const PlacedCell& cell : placed) cells.push_back(cell.cell);
    return run_cells(placed, CostModel(cells, false), options_, observer_);
  }

  std::string log() const { return read_file(folder_ / "log"); }
  size_t line_of(const std::string& text) const { return log().find(text + "\n"); }

  testing::TemporaryFolder folder_;
  PhaseOptions options_;
  Lines observer_;
};

TEST_F(CellsWithParents, BeginWhenAllOfTheirParentsHaveEnded) {
  const PhaseResult result = run({{"b", "c"}, {"c"}, {}, {}});
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.ended, 4);
  EXPECT_LT(line_of("end c"), line_of("begin b"));
  EXPECT_LT(line_of("end b"), line_of("begin a"));
  EXPECT_LT(line_of("begin d"), line_of("begin b")) << "a worker was idle while a cell could have begun";
}

TEST_F(CellsWithParents, TakeParentsThatWereFinalBefore) {
  ASSERT_THAT(run({{}}).problems, IsEmpty());
  const PhaseResult result = run({{}, {"a"}});
  EXPECT_EQ(result.final_before, 1);
  EXPECT_EQ(result.ended, 1);
}

TEST_F(CellsWithParents, AFailedParentIsOneLineForEachThatNeedsIt) {
  make_folders(folder_ / "runs/a");
  write_file_atomically(folder_ / "runs/a/fail", "");
  const PhaseResult result = run({{}, {"a"}, {"b"}, {}});
  EXPECT_THAT(result.problems,
              ElementsAre(HasSubstr("a a: broke (log: "), "b b: parent a failed", "c c: parent b failed"));
  EXPECT_EQ(result.ended, 1);
  EXPECT_EQ(status_of(folder_ / "runs/b", "b").status, RunState::queued) << "the next sweep takes it up";
  EXPECT_EQ(line_of("begin b"), std::string::npos);
  // Failed before, and not to be tried again.
  EXPECT_THAT(run({{}, {"a"}}).problems,
              ElementsAre(HasSubstr("a a: failed before: broke"), "b b: parent a failed"));
  std::filesystem::remove(folder_ / "runs/a/fail");
  options_.retry_failed = true;
  EXPECT_THAT(run({{}, {"a"}, {"b"}}).problems, IsEmpty());
}

TEST_F(CellsWithParents, AParentThatIsNoRunAndACircleAreLinesToo) {
  EXPECT_THAT(run({{"x"}}).problems, ElementsAre("a a: parent x is no run of this sweep"));
  EXPECT_THAT(run({{"b"}, {"a"}}).problems,
              ElementsAre(HasSubstr("wait for one another"), HasSubstr("wait for one another")));
}

// The rest of an interrupted run takes 0.3 s here, of others, by round figures, seconds: it says nothing about them.
TEST_F(CellsWithParents, WhatIsLeftIsNotForecastByTheRestOfARun) {
  make_folders(folder_ / "runs/a");
  RunStatus status;
  status.run_id = "a";
  status.update = 1'000'000'000;  // far enough
  write_status(folder_ / "runs/a/status.json", status);
  options_.jobs = 1;
  EXPECT_THAT(run({{}, {"a"}, {"a"}}).problems, IsEmpty());
  const auto after_a = std::find_if(observer_.states.begin(), observer_.states.end(),
                                    [](const SweepState& state) { return state.done == 1; });
  ASSERT_NE(after_a, observer_.states.end());
  Cell cell;
  cell.options.data.set = "synthetic";
  cell.run_id = "b";
  const double of_one = CostModel({cell}, false).seconds("b");
  ASSERT_GT(of_one, 1);
  EXPECT_NEAR(after_a->seconds_left, 2 * of_one, 1e-6);
}

class SharedCells : public CellsWithParents {
 protected:
  SharedCells() { options_.claims = folder_ / "claims"; }

  // Does `what` once a worker of this process has begun, while run() goes on.
  PhaseResult run_while(const std::function<void()>& what,
                        const std::vector<std::vector<std::string>>& parents) {
    std::thread other([&] {
      while (!std::filesystem::exists(folder_ / "log"))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      what();
    });
    const PhaseResult result = run(parents);
    other.join();
    return result;
  }

  void say(const std::string& id, RunState state, const std::string& message = "") {
    RunStatus status;
    status.run_id = id;
    status.status = state;
    status.message = message;
    status.updated_utc = utc_now();
    if (is_final(state)) write_file_atomically(folder_ / "runs/" + id + "/run.h5", "");
    write_status(folder_ / "runs/" + id + "/status.json", status);
  }

  bool began(const std::string& id) const { return line_of("begin " + id) != std::string::npos; }

  Claims others_{folder_ / "claims"};
};

TEST_F(SharedCells, WhatAnotherProcessHasClaimedIsWaitedForAndItsBranchesThenRun) {
  ASSERT_TRUE(others_.take(0xa));
  const auto finish = [&] {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(600));  // c has ended, and nothing is left but a and b
    say("a", RunState::finished);
    others_.release(0xa);
  };
  const PhaseResult result = run_while(finish, {{}, {"a"}, {}});
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.ended, 2);
  EXPECT_EQ(result.final_before, 1);
  EXPECT_FALSE(began("a"));
  EXPECT_THAT(observer_.lines, ::testing::Contains("waiting for 2 runs that other processes are at work on"));
  EXPECT_TRUE(others_.take(0xb)) << "a claim outlived its run";
}

TEST_F(SharedCells, WhatADeadProcessHadClaimedIsTakenOver) {
  ASSERT_TRUE(others_.take(0xa));
  const PhaseResult result = run_while([&] { others_.release(0xa); }, {{}, {}});
  EXPECT_EQ(result.ended, 2);
}

TEST_F(SharedCells, WhatAnotherProcessHasRunMeanwhileIsNotRunAgain) {
  options_.jobs = 1;
  ASSERT_TRUE(others_.take(0xb));
  ASSERT_TRUE(others_.take(0xc));
  const auto end = [&] {
    say("b", RunState::finished);
    say("c", RunState::failed, "broke there");
    others_.release(0xb);
    others_.release(0xc);
  };
  for (const bool retry : {false, true}) {
    options_.retry_failed = retry;
    const PhaseResult result = run_while(end, {{}, {}, {}});
    EXPECT_THAT(result.problems, ElementsAre(HasSubstr("failed before: broke there")));
    EXPECT_FALSE(began("b"));
    EXPECT_FALSE(began("c"));
    for (const char* id : {"a", "b", "c"}) say(id, RunState::queued);
    std::filesystem::remove(folder_ / "log");
    others_.take(0xb);
    others_.take(0xc);
  }
}

TEST_F(SharedCells, AWorkerThatOutlivesItsSweepHasItsRunToItself) {
  make_folders(folder_ / "runs/a");
  auto lock = std::make_unique<FileLock>(folder_ / "runs/a/lock", "the test");
  const PhaseResult result = run_while(
      [&] {
        EXPECT_FALSE(began("a"));
        lock.reset();
      },
      {{}, {}});
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.ended, 2);
}

TEST_F(SharedCells, AParentOfAnotherPartHasToBeDone) {
  EXPECT_THAT(run({{"d"}}).problems, ElementsAre("a a: run its parent d first"));
}

}  // namespace
}  // namespace basin
