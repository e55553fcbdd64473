// A sweep that is killed, or interrupted, and started again leaves the very bits of an undisturbed one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "core/files.h"
#include "io/status_file.h"
#include "tests/apps/stored_numbers.h"
#include "tests/apps/tiny_sweep.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Names of the same length: paths stand in command lines, and those in the journals.
const std::string kUndisturbed = "out-a", kDisturbed = "out-b";

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

bool is_training(const Worker& worker) { return worker.training; }
bool is_probing(const Worker& worker) { return worker.probing; }
// What a kill leaves of this one can be resumed.
bool has_checkpoint(const Worker& worker) {
  return worker.training && std::filesystem::exists(worker.folder + "/ckpt/latest.h5");
}

using State = bool (*)(const Worker&);

// Until a worker is in the state. False where the sweep ended before.
bool wait_for_worker(RunningBinary& sweep, const std::string& out, State in_state) {
  while (sweep.alive()) {
    const std::vector<Worker> workers = live_workers(out);
    if (std::any_of(workers.begin(), workers.end(), in_state)) return true;
    sleep_for(0.002);
  }
  return false;
}

void wait_until_gone(const std::string& out) {
  for (int i = 0; i < 1000 && !live_workers(out).empty(); ++i) sleep_for(0.01);
  ASSERT_THAT(live_workers(out), IsEmpty()) << "workers outlive their sweep";
}

struct KillCounts {
  int training = 0, probing = 0;  // kills that ended a worker in this state
};

// In which states a kill met the workers, from what their files say now that they are dead.
KillCounts states_of_dead(const std::vector<Worker>& workers) {
  KillCounts counts;
  for (const Worker& worker : workers) {
    const RunStatus status = read_status(worker.folder + "/status.json");
    counts.training = counts.training || (status.status == RunState::running && status.pid == worker.pid);
    counts.probing = counts.probing || (is_final(status.status) && is_within_probes(worker.folder));
  }
  return counts;
}

// The stored numbers of both, and that the comparison is of all that it should be of.
void expect_same_numbers(const TinySweep& sweep) {
  const auto expected = stored_numbers(sweep.path(kUndisturbed)),
             found = stored_numbers(sweep.path(kDisturbed));
  EXPECT_THAT(differences(found, expected), IsEmpty());
  std::string names;
  for (const auto& [name, text] : expected) names += name + "\n";
  for (const char* part :
       {"/run.h5:/layers/trust_ratio", "/ckpt/end.h5:/model/", "/ckpt/start.h5:/model/",
        "/ckpt/end.h5:/optimizer/", "/probes/end.noise_scale.h5:@", "/probes/end.noise_scale.h5:/quantities/",
        "sweep.h5:/runs/test_acc", "sweep.h5:/curves/train/loss", "sweep.h5:/layers/1/update_norm",
        "table.md", "status.json"}) {
    EXPECT_THAT(names, HasSubstr(part));
  }
}

// Sweeps into two folders of one study, the second killed at random moments and started again each time:
// every third kill waits until a worker probes, the first until there is a checkpoint, the others until a worker trains, and all up
// to `longest_wait` seconds more and until a worker is in that state again: how fast the machine is doesn't decide what they meet.
// The last start must end with the very numbers of the undisturbed sweep.
void expect_kills_change_nothing(const TinySweep& sweep, int kills, double longest_wait, unsigned seed) {
  ASSERT_EQ(sweep.run({}, kUndisturbed).exit_code, 0);
  const std::string out = sweep.path(kDisturbed);
  std::mt19937 random(seed);
  KillCounts total;
  for (int i = 0; i < kills; ++i) {
    RunningBinary process(sweep.arguments({}, kDisturbed));
    const State state = i % 3 == 1 ? is_probing : i == 0 ? has_checkpoint : is_training;
    ASSERT_TRUE(wait_for_worker(process, out, state)) << "kill " << i << ": the sweep ended before";
    sleep_for(std::uniform_real_distribution<double>(0, state == is_probing ? 0.02 : longest_wait)(random));
    ASSERT_TRUE(wait_for_worker(process, out, state)) << "kill " << i << ": the sweep ended meanwhile";
    const std::vector<Worker> workers = live_workers(out);
    process.send(SIGKILL);
    ASSERT_EQ(process.wait().exit_code, 128 + SIGKILL) << "kill " << i << ": the sweep ended before";
    wait_until_gone(out);
    const KillCounts now = states_of_dead(workers);
    const BinaryResult look = run_binary({"status", out});
    EXPECT_THAT(look.out, HasSubstr(", 0 at work, 0 failed, ")) << look.err;
    if (now.training + now.probing > 0) {
      EXPECT_THAT(look.out, HasSubstr(" of those waiting: killed"));
    }
    total.training += now.training;
    total.probing += now.probing;
  }
  fmt::print("{} kills: {} met a worker training, {} one probing\n", kills, total.training, total.probing);
  EXPECT_GE(total.training, kills / 3);
  EXPECT_GE(total.probing, kills / 6 + (kills < 6));
  const BinaryResult last = sweep.run({}, kDisturbed);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  std::string logs;
  for (const std::string& run : sweep.runs(kDisturbed + "/runs")) logs += read_file(run + "/run.log");
  EXPECT_THAT(logs, HasSubstr("resumed from update"));
  expect_same_numbers(sweep);
}

// Probes that take half a second on the tiny network, so that a kill can meet them.
const std::string kLongerProbes =
    "[[sweep.set]]\nset = { probes.run = ['top_eigenvalues', 'sharpness_keskar', 'noise_scale'], "
    "probes.subset = 0, "
    "probes.micro_batch = 20, sharpness_keskar.iterations = 20, top_eigenvalues.tolerance = 1e-3 }\n";

TEST(SweepCommandKilled, ThreeTimesEndsWithTheSameNumbers) {
  expect_kills_change_nothing(
      TinySweep(kTwoByTwo + "[[sweep.set]]\nset = { updates = 1200 }\n" + kLongerProbes), 3, 0.5, 1);
}

// About a minute on two workers: twelve cells of every kind of end and three probes.
TEST(SlowSweepCommandKilled, TwentyTimesEndsWithTheSameNumbers) {
  const std::string study =
      "[sweep]\noptimizer = ['sgd', 'lars', 'lamb']\nprotocol = ['A-updates', 'B']\nseed = [1, 2]\n" +
      kLongerProbes +
      "[[sweep.set]]\nset = { updates = 6000, target_loss = 0.5, max_gradients = 200000, check_every = 2000, "
      "loss_levels = [1.5], evaluate_every = 20000, probes.at = ['end', 'loss', 'start'] }\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lars' }\nset = { learning_rate = 1.0 }\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.005 }\n";
  expect_kills_change_nothing(TinySweep(study), 20, 1.5, 2);
}

TEST(SweepCommand, CtrlCLeavesResumableStates) {
  const TinySweep sweep(kTwoByTwo + "[[sweep.set]]\nset = { updates = 1200 }\n");
  ASSERT_EQ(sweep.run({}, kUndisturbed).exit_code, 0);
  RunningBinary process(sweep.arguments({}, kDisturbed));
  ASSERT_TRUE(wait_for_worker(process, sweep.path(kDisturbed), is_training));
  sleep_for(0.1);
  process.send(SIGINT);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr("the same command resumes from here"));
  std::multiset<std::string> statuses;
  for (const std::string& run : sweep.runs(kDisturbed + "/runs"))
    statuses.insert(to_string(read_status(run + "/status.json").status));
  EXPECT_EQ(statuses.count("interrupted") + statuses.count("queued"), 4u)
      << ::testing::PrintToString(statuses);
  EXPECT_GE(statuses.count("interrupted"), 1u);
  const BinaryResult second = sweep.run({}, kDisturbed);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  expect_same_numbers(sweep);
}

}  // namespace
}  // namespace basin::testing
