// `basin train --ranks` with parallel.delays = "real": a parameter server and its workers, some of which end before their time.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "core/files.h"
#include "io/checkpoint.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "ranks/rank_group.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// At a rate so small that no staleness, which is chance, makes a run diverge.
std::vector<std::string> with_workers(int64_t workers, int64_t bound, int64_t updates) {
  return {fmt::format("updates = {}", updates),
          "learning_rate = 0.002",
          "parallel.mode = \"ssp\"",
          fmt::format("parallel.workers = {}", workers),
          fmt::format("parallel.bound = {}", bound),
          "parallel.delays = \"real\""};
}

/// Every update is in the record once, and no batch made two of them.
void expect_whole(const RunRecord& record, size_t updates) {
  const Table& train = record.tables.at("train");
  const std::vector<double> numbers = train.column("update"), batches = train.column("worker_batch");
  ASSERT_EQ(numbers.size(), updates);
  for (size_t i = 0; i < updates; ++i) EXPECT_EQ(numbers[i], static_cast<double>(i + 1));
  EXPECT_EQ(std::set<double>(batches.begin(), batches.end()).size(), updates);
}

TEST(ParallelWorkers, MakeARun) {
  const TinyStudy study(with_workers(2, 1, 40));
  const BinaryResult result = study.train({"--ranks", "3", "--probe"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const RunRecord record = read_run_file(study.run_folder() + "/run.h5");
  expect_whole(record, 40);
  EXPECT_EQ(provenance_of(record, "workers"), "2");
  EXPECT_EQ(provenance_of(record, "ranks"), "") << "nobody shared a batch";
}

/// The second of three workers gets a signal in the middle of a run; what the run has to say about it. With a bound the others would wait for it
/// for ever.
RunRecord::Event warning_after(int signal) {
  const TinyStudy study(with_workers(3, 1, 600));
  RunningBinary process(study.train_arguments({"--ranks", "4", "--probe"}));
  wait_for_updates(study, process, 20);
  const std::vector<pid_t> workers = children_of(process.pid());
  EXPECT_EQ(workers.size(), 3U);
  kill(workers.at(1), signal);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const RunRecord record = read_run_file(study.run_folder() + "/run.h5");
  expect_whole(record, 600);
  const auto event = std::find_if(record.events.begin(), record.events.end(),
                                  [](const RunRecord::Event& e) { return e.level == "warning"; });
  if (event == record.events.end()) throw std::runtime_error("nothing was said of it");
  const auto missing_from = std::stoul(event->text.substr(event->text.rfind("update ") + 7));
  const std::vector<double> worker = record.tables.at("train").column("worker");
  EXPECT_LE(missing_from, worker.size());
  for (size_t update = missing_from; update <= worker.size(); ++update)
    EXPECT_NE(worker[update - 1], 1) << "at update " << update;
  return *event;
}

TEST(ParallelWorkers, AKilledOneIsEvicted) {
  const RunRecord::Event event = warning_after(SIGKILL);
  EXPECT_THAT(event.text,
              ContainsRegex("rank 2 \\(pid [0-9]+ on .*\\) is gone: worker 1 is missing from update"));
  EXPECT_LT(event.seconds, 60) << "since the start of the run";
}

// Its connections stay as they are: only its silence says that nothing more will come.
TEST(ParallelWorkers, SlowAStoppedOneIsEvicted) {
  const RunRecord::Event event = warning_after(SIGSTOP);
  EXPECT_THAT(event.text,
              ContainsRegex("rank 2 \\(pid [0-9]+ on .*\\) has been silent for 2[0-9] s: worker 1 is "
                            "missing from update"));
  EXPECT_GT(event.seconds, RankGroup::kSilence);
  EXPECT_LT(event.seconds, 60) << "since the start of the run";
}

// The signal is there before the server has found out who is gone.
TEST(ParallelWorkers, CtrlCWithALostOneIsAnInterruption) {
  const TinyStudy study(with_workers(3, -1, 100000));
  RunningBinary process(study.train_arguments({"--ranks", "4"}));
  wait_for_updates(study, process, 20);
  kill(children_of(process.pid()).front(), SIGKILL);
  process.send(SIGINT);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(read_status(study.run_folder() + "/status.json").status, RunState::interrupted);
}

// They wait for a word that never comes while the server ends.
TEST(ParallelWorkers, OfARunThatCantGoOnEndWithIt) {
  const TinyStudy study(with_workers(2, -1, 100000));
  RunningBinary process(study.train_arguments({"--ranks", "3"}));
  wait_for_updates(study, process, 20);
  process.send(SIGINT);
  ASSERT_EQ(process.wait().exit_code, 130);
  for (const char* const label : {"latest", "previous"})
    write_text(study.run_folder() + "/ckpt/" + label + ".h5", "no checkpoint");
  const BinaryResult result = study.train({"--ranks", "3"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("latest.h5"));
}

// The whitening filters, which no order brings, are the parent's after a stop too: at a rate of nothing the loss of a batch is that of the plain
// run.
TEST(ParallelWorkers, OfAResumedBranchHaveTheParentsBuffers) {
  std::vector<std::string> lines = with_workers(2, -1, 4);
  lines.insert(lines.end(), {"model = \"airbench\"", "learning_rate = 1e-12", "batch_size = 16",
                             "parallel.mode = \"one\"", "parallel.delays = \"constant\""});
  const TinyStudy study(lines, {"[airbench]", "widths = [4, 4]", "norm = \"none\""});
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string parent = study.run_folder();
  const auto branch = [&](const std::string& out, int64_t updates) {
    return study.train_arguments({"--set", "branch.from=" + parent, "--set", "branch.at=end", "--set",
                                  fmt::format("branch.updates={}", updates)},
                                 out);
  };
  ASSERT_EQ(run_binary(branch("plain", 150)).exit_code, 0);
  const std::vector<double> plain =
      read_run_file(study.run_folder("plain") + "/run.h5").tables.at("train").column("loss");

  std::vector<std::string> real = branch("real", 120);
  real.insert(real.end(), {"--ranks", "3", "--set", "parallel.mode=ssp", "--set", "parallel.delays=real"});
  RunningBinary process(real);
  wait_for_updates(study, process, 20, "real");
  process.send(SIGINT);
  ASSERT_EQ(process.wait().exit_code, 130);
  const BinaryResult resumed = run_binary(real);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const Table train = read_run_file(study.run_folder("real") + "/run.h5").tables.at("train");
  const std::vector<double> loss = train.column("loss"), batch = train.column("worker_batch");
  for (size_t i = 0; i < loss.size(); ++i)
    ASSERT_NEAR(loss[i], plain.at(static_cast<size_t>(batch[i])), 1e-5) << "float32, at update " << i;
}

TEST(ParallelWorkers, AllOfThemGoneEndTheRunWhichGoesOn) {
  const TinyStudy study(with_workers(2, 0, 100000));
  RunningBinary process(study.train_arguments({"--ranks", "3"}));
  wait_for_updates(study, process, 20);
  for (const pid_t worker : children_of(process.pid())) kill(worker, SIGKILL);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no worker is left: rank "));
  const RunStatus status = read_status(study.run_folder() + "/status.json");
  EXPECT_EQ(status.status, RunState::interrupted);

  RunningBinary again(study.train_arguments({"--ranks", "3"}));
  wait_for_updates(study, again, status.update + 5);
  again.send(SIGINT);
  const BinaryResult interrupted = again.wait();
  EXPECT_EQ(interrupted.exit_code, 130) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("the same command resumes from here"));
  const int64_t done = read_status(study.run_folder() + "/status.json").update;
  EXPECT_GE(done, status.update + 5);
}

/// Largest difference of a weight at the end of two runs, relative to the norm of all of the first one's.
double difference_at_the_end(const std::string& a, const std::string& b) {
  const Checkpoint one = read_checkpoint(a + "/ckpt/end.h5"), other = read_checkpoint(b + "/ckpt/end.h5");
  double squares = 0, difference = 0;
  for (size_t i = 0; i < one.parameters.size(); ++i) {
    squares += one.parameters[i].tensor.square().sum().item<double>();
    difference += (one.parameters[i].tensor - other.parameters[i].tensor).square().sum().item<double>();
  }
  return std::sqrt(difference / squares);
}

/// `basin train` of the same options by one process, with the arrivals of a run that was.
BinaryResult made_again(const TinyStudy& study, const std::string& order, const std::string& out) {
  return run_binary(
      study.train_arguments({"--set", "parallel.delays=recorded", "--set", "parallel.order=" + order}, out));
}

// 60 updates of float64 in another order of sums: real processes, and one that has the order in which they came.
TEST(ParallelWorkers, AreMadeAgainByOneProcess) {
  for (const int64_t bound : {1, -1}) {
    std::vector<std::string> lines = with_workers(3, bound, 60);
    lines.emplace_back("dtype = \"float64\"");
    const TinyStudy study(lines);
    const BinaryResult real = study.train({"--ranks", "4"});
    ASSERT_EQ(real.exit_code, 0) << real.err;
    const BinaryResult again = made_again(study, study.run_folder(), "again");
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const std::string folder = study.run_folder("again");
    EXPECT_LE(difference_at_the_end(study.run_folder(), folder), 1e-12) << bound;
    const RunRecord record = read_run_file(folder + "/run.h5");
    EXPECT_THAT(read_file(folder + "/config.toml"),
                HasSubstr("order = \"sha256:" + provenance_of(record, "order_sha256") + "\""));
    const Table real_order = read_run_file(study.run_folder() + "/run.h5").tables.at("train"),
                order = record.tables.at("train");
    for (const char* const column : {"worker", "staleness", "worker_lead", "worker_batch", "arrival_time"})
      EXPECT_EQ(order.column(column), real_order.column(column)) << column;
    const std::vector<double> staleness = order.column("staleness");
    EXPECT_GE(*std::max_element(staleness.begin(), staleness.end()), 1) << "nothing was stale";
  }
}

TEST(ParallelWorkers, NeedAnOrderToBeMadeAgain) {
  const TinyStudy study(with_workers(3, 1, 60));
  const BinaryResult none = made_again(study, "", "again");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("\"recorded\" needs an order"));
  const BinaryResult missing = made_again(study, study.path("nowhere.h5"), "again");
  EXPECT_EQ(missing.exit_code, 4);
  EXPECT_THAT(missing.err, HasSubstr("nowhere.h5"));
}

// A run is known by the arrivals, not by where they lie: what is put in their place isn't taken for them.
TEST(ParallelWorkers, OfAnotherOrderAreAnotherRun) {
  const TinyStudy study(with_workers(2, -1, 30));
  const std::string order = study.path("order.h5");
  for (const char* const out : {"one", "other"})
    ASSERT_EQ(run_binary(study.train_arguments({"--ranks", "3"}, out)).exit_code, 0);
  fs::copy_file(study.run_folder("one") + "/run.h5", order);
  ASSERT_EQ(made_again(study, order, "again").exit_code, 0);
  const std::string config = study.run_folder("again") + "/config.toml";
  fs::copy_file(study.run_folder("other") + "/run.h5", order, fs::copy_options::overwrite_existing);
  const BinaryResult changed = run_binary({"train", config, "--out", study.path("changed")});
  EXPECT_EQ(changed.exit_code, 4);
  EXPECT_THAT(changed.err, HasSubstr("order.h5: has not the order of arrivals that parallel.order names"));
  ASSERT_EQ(made_again(study, order, "again").exit_code, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(study.path("again/runs")), fs::directory_iterator()), 2);
}

TEST(ParallelWorkers, AreMadeAgainInOneSweep) {
  const TinyStudy study(with_workers(2, 1, 30),
                        {"[sweep]", "seed = [1, 2]", "parallel.delays = [\"real\", \"recorded\"]",
                         "[[sweep.set]]", "when = { parallel.delays = \"recorded\" }",
                         "set = { parallel.order = 'parallel.delays = \"real\"' }"});
  const BinaryResult sweep = run_binary({"sweep", study.study(), "--out", study.path("out"), "--ranks", "3"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  std::map<std::string, std::vector<std::vector<double>>> orders;
  for (const auto& folder : fs::directory_iterator(study.path("out/runs"))) {
    const RunRecord record = read_run_file(folder.path().string() + "/run.h5");
    expect_whole(record, 30);
    const Table& train = record.tables.at("train");
    orders[provenance_of(record, "workers")].push_back(train.column("arrival_time"));
  }
  EXPECT_EQ(orders[""].size(), 2U);
  EXPECT_THAT(orders[""], ::testing::UnorderedElementsAreArray(orders["2"]));
}

TEST(ParallelWorkers, HaveAForecastAndMakeASweep) {
  const TinyStudy study(with_workers(2, 0, 30));
  const BinaryResult forecast = run_binary({"sweep", study.study(), "--out", study.path("out"), "--dry-run"});
  ASSERT_EQ(forecast.exit_code, 0) << forecast.err;
  EXPECT_THAT(forecast.out, HasSubstr("1 run"));
  const BinaryResult sweep = run_binary({"sweep", study.study(), "--out", study.path("out"), "--ranks", "3"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  expect_whole(read_run_file(study.run_folder() + "/run.h5"), 30);
}

TEST(ParallelWorkers, AreAsManyAsTheOptionsSay) {
  const TinyStudy study(with_workers(3, 1, 40));
  for (const std::vector<std::string>& ranks : {std::vector<std::string>(), {"--ranks", "3"}}) {
    const BinaryResult result = study.train(ranks);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(fmt::format(
                                "parallel.delays = \"real\" needs parallel.workers + 1 = 4 ranks, not {}",
                                ranks.empty() ? 1 : 3)));
  }
}

}  // namespace
}  // namespace basin::testing
