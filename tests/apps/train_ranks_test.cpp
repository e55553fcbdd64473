// `basin train --ranks`: one run on several processes, some of which end before their time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "tests/apps/tiny_study.h"
#include "tests/support/environment.h"

namespace basin::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// A run of minutes that keeps a state after every update.
std::vector<std::string> endless_run() { return {"updates = 200000", "layers_every = 100000"}; }

TEST(TrainRanks, TwoProcessesGiveTheRunOfOne) {
  const TinyStudy one({"dtype = \"float64\""}), two({"dtype = \"float64\""});
  ASSERT_EQ(one.train().exit_code, 0);
  const BinaryResult result = two.train({"--ranks", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("finished"));
  const RunRecord a = read_run_file(one.run_folder() + "/run.h5"),
                  b = read_run_file(two.run_folder() + "/run.h5");
  EXPECT_EQ(a.header.run_id, b.header.run_id);
  const std::vector<double> losses = a.tables.at("train").column("loss"),
                            others = b.tables.at("train").column("loss");
  ASSERT_EQ(losses.size(), others.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], others[i], 1e-12 * losses[i]);
  EXPECT_EQ(provenance_of(a, "ranks"), "");
  EXPECT_EQ(provenance_of(b, "ranks"), "2");
}

// Two processes of a launcher that were given different studies, and others that read different data.
TEST(TrainRanks, DisagreementIsOneLine) {
  const TinyStudy one, other({"updates = 7"});
  const std::string port = std::to_string(30000 + getpid() % 20000);
  const auto variables = [&](const char* rank) {
    return Variables(
        {{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  };
  std::unique_ptr<RunningBinary> second;
  {
    const Variables set = variables("1");
    second = std::make_unique<RunningBinary>(other.train_arguments());
  }
  const Variables set = variables("0");
  const BinaryResult result = one.train();
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(
      result.err,
      ContainsRegex("^basin: ranks disagree on the study: rank 0 \\(pid .*\\) has [0-9a-f]{12}, rank 1"));
  EXPECT_EQ(second->wait().exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(one.path("out/runs"))) << "nothing was begun";
}

// Nobody has met it, so its parent alone can say so; the others would wait for it for two minutes. Nor are these waited for: rank 2 has
// a quarter of a minute for its last words where there can be any.
TEST(TrainRanks, OneThatEndsBeforeItMetTheOthersIsNamedAtOnce) {
  const TinyStudy study(endless_run());
  const auto start = std::chrono::steady_clock::now();
  RunningBinary process(study.train_arguments({"--ranks", "3"}));
  std::vector<pid_t> others;
  while (process.alive() && others.size() < 2) others = children_of(process.pid());
  ASSERT_EQ(others.size(), 2u);
  kill(others.front(), SIGKILL);  // rank 1, still loading the program
  const BinaryResult result = process.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(14));
  EXPECT_NE(kill(others.back(), 0), 0) << "rank 2 still runs";
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex("^basin: rank 1 \\(pid [0-9]+\\) ended before it met the others: signal 9\n$"));
}

// 14 ms after the kill the others' sums fail; who it was shows in a few beats.
TEST(TrainRanks, AKilledRankEndsTheOthersAndTheRunGoesOn) {
  const TinyStudy study(endless_run());
  RunningBinary process(study.train_arguments({"--ranks", "3"}));
  wait_for_updates(study, process, 3);
  const std::vector<pid_t> others = children_of(process.pid());
  ASSERT_EQ(others.size(), 2u);
  const auto start = std::chrono::steady_clock::now();
  kill(others[1], SIGKILL);
  const BinaryResult result = process.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("basin: rank 2 \\(pid [0-9]+ on .*\\) is gone"));
  EXPECT_NE(kill(others[0], 0), 0) << "the other rank still runs";
  const RunStatus status = read_status(study.run_folder() + "/status.json");
  EXPECT_EQ(status.status, RunState::interrupted);

  RunningBinary again(study.train_arguments({"--ranks", "2"}));
  wait_for_updates(study, again, status.update + 2);
  again.send(SIGINT);
  const BinaryResult interrupted = again.wait();
  EXPECT_EQ(interrupted.exit_code, 130) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("the same command resumes from here"));
  EXPECT_GT(read_status(study.run_folder() + "/status.json").update, status.update);
}

TEST(TrainRanks, SlowAStoppedRankIsMissedWithinAMinute) {
  for (const bool first : {false, true}) {  // a follower; rank 0, which has the store
    const TinyStudy study(endless_run());
    RunningBinary process(study.train_arguments({"--ranks", "2"}));
    wait_for_updates(study, process, 3);
    const std::vector<pid_t> others = children_of(process.pid());
    ASSERT_EQ(others.size(), 1u);
    const auto start = std::chrono::steady_clock::now();
    kill(first ? process.pid() : others[0], SIGSTOP);
    if (first) {
      while (kill(others[0], 0) == 0 && children_of(process.pid()).size() == 1 &&
             std::chrono::steady_clock::now() - start < std::chrono::seconds(70)) {
        std::ifstream state(fmt::format("/proc/{}/stat", others[0]));
        std::string line;
        std::getline(state, line);
        if (line.find(") Z ") != std::string::npos) break;  // ended, and nobody is awake to hear of it
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
      kill(process.pid(), SIGKILL);
      process.wait();
      continue;
    }
    const BinaryResult result = process.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    EXPECT_EQ(result.exit_code, 7) << result.err;
    EXPECT_THAT(result.err, ContainsRegex("rank 1 \\(pid .*\\) has been silent for 2[0-9] s"));
    EXPECT_EQ(read_status(study.run_folder() + "/status.json").status, RunState::interrupted);
  }
}

/// Every number of a probe file as text, by quantity.
std::map<std::string, std::vector<double>> numbers_in_probe(const std::string& path) {
  std::map<std::string, std::vector<double>> numbers;
  for (const Quantity& quantity : read_probe_file(path).quantities) numbers[quantity.name] = quantity.value;
  return numbers;
}

// The whole of probing: a search, sums by example, draws, displaced weights.
TEST(TrainRanks, ProbesGiveTheNumbersOfOneProcess) {
  const TinyStudy study({"dtype = \"float64\""});
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string probes =
      "top_eigenvalues,noise_scale,gradient_statistics,sharpness_sam,curvature,margins";
  std::map<int, std::map<std::string, std::map<std::string, std::vector<double>>>> found;
  for (const int ranks : {1, 3}) {
    const BinaryResult result =
        run_binary({"probe", study.run_folder(), "--only", probes, "--dtype", "float64", "--force", "--ranks",
                    std::to_string(ranks), "--set", "runtime.threads=1"});
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    for (const auto& entry : std::filesystem::directory_iterator(study.run_folder() + "/probes"))
      if (entry.path().extension() == ".h5")
        found[ranks][entry.path().filename()] = numbers_in_probe(entry.path());
  }
  ASSERT_EQ(found[1].size(), 6u);
  for (const auto& [file, quantities] : found[1]) {
    for (const auto& [name, values] : quantities) {
      const std::vector<double>& others = found[3].at(file).at(name);
      ASSERT_EQ(others.size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i]) && std::isnan(others[i])) continue;
        // What a search finds is exact to its residual, and differences of sums lose digits.
        EXPECT_NEAR(others[i], values[i], 1e-6 * std::abs(values[i]) + 1e-10) << file << ' ' << name;
      }
    }
  }
}

TEST(TrainRanks, BadPlacesAreOneLine) {
  const TinyStudy study;
  const auto refused = [&](const std::map<std::string, std::optional<std::string>>& variables,
                           const std::vector<std::string>& more = {}) {
    const Variables set(variables);
    const BinaryResult result = study.train(more);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({}, {"--ranks", "0"}), HasSubstr("--ranks"));
  EXPECT_THAT(refused({}, {"--ranks", "4096"}), HasSubstr("this machine takes at most"));
  EXPECT_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE = \"0\""));
  EXPECT_THAT(refused({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE = 2 without RANK"));
  EXPECT_THAT(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}, {"--ranks", "3"}),
              HasSubstr("--ranks 3: a launcher has started 2 processes already"));
  EXPECT_THAT(refused({}, {"--ranks", "2", "--set", "batch_size=1"}),
              HasSubstr("a batch of 1 can't be shared by 2 ranks"));
  EXPECT_THAT(refused({{"GLOO_SOCKET_IFNAME", "nowhere0"}}, {"--ranks", "2"}),
              HasSubstr("GLOO_SOCKET_IFNAME = \"nowhere0\""));
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string port = std::to_string(ntohs(address.sin_port));
  EXPECT_THAT(
      refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}}),
      HasSubstr("rank 0 can't listen at port " + port));
  close(taken);
}

}  // namespace
}  // namespace basin::testing
