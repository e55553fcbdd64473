// `basin sweep` from outside: what it leaves, how it goes on, what one bad cell does to the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "core/files.h"
#include "core/toml_file.h"
#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kBase = R"(
model = "mlp"
protocol = "A-updates"
updates = 20
batch_size = 32
micro_batch = 32
learning_rate = 0.05
checkpoint_seconds = 0.2
[data]
set = "synthetic"
train_examples = 200
test_examples = 60
[mlp]
hidden = [8]
[probes]
run = ["noise_scale", "top_eigenvalues"]
at = ["end"]
subset = 50
[top_eigenvalues]
count = 1
tolerance = 0.05
)";

// A folder with a study, and sweeps of it into FOLDER/out or another folder.
class TinySweep {
 public:
  explicit TinySweep(const std::string& sweep, const std::string& top = "") {
    write_text(folder_ / "study.toml", top + kBase + sweep);
  }
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}, const std::string& out = "out") const {
    std::vector<std::string> all = {"sweep", folder_ / "study.toml", "--out", folder_ / out};
    all.insert(all.end(), more.begin(), more.end());
    if (std::find(all.begin(), all.end(), "--jobs") == all.end()) all.insert(all.end(), {"--jobs", "2"});
    return all;
  }
  BinaryResult run(const std::vector<std::string>& more = {}, const std::string& out = "out") const {
    return run_binary(arguments(more, out));
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> runs(const std::string& under = "out/runs") const {
    std::vector<std::string> folders;
    for (const auto& entry : fs::directory_iterator(folder_ / under)) folders.push_back(entry.path().string());
    std::sort(folders.begin(), folders.end());
    return folders;
  }
  std::vector<std::string> statuses() const {
    std::vector<std::string> words;
    for (const std::string& run : runs()) words.push_back(read_status(run + "/status.json").status);
    return words;
  }

 private:
  TemporaryFolder folder_;
};

const std::string kTwoByTwo = "[sweep]\noptimizer = ['sgd', 'lamb']\nseed = [1, 2]\n";

// Every number of a sweep but times, and every bit of its final parameters.
std::map<std::string, std::string> numbers(const TinySweep& sweep, const std::string& out) {
  std::map<std::string, std::string> texts;
  for (const std::string& run : sweep.runs(out + "/runs")) {
    std::string text = comparable(read_run_file(run + "/run.h5"));
    for (const auto& entry : fs::directory_iterator(run + "/probes")) {
      if (entry.path().extension() != ".h5") continue;
      const ProbeRecord probe = read_probe_file(entry.path());
      std::string lines;
      for (const ProbeQuantity& q : probe.quantities) {
        lines += fmt::format("{}.{}.{} {} {} {} {} {}\n", probe.checkpoint, probe.probe, q.name, q.status,
                             fmt::join(q.value, " "), fmt::join(q.uncertainty, " "), fmt::join(q.ci_low, " "),
                             fmt::join(q.ci_high, " "));
      }
      texts[fs::path(run).filename().string() + "/" + entry.path().filename().string()] = lines;
    }
    for (const ParameterInfo& parameter : read_checkpoint(run + "/ckpt/end.h5").parameters) {
      const at::Tensor flat = parameter.tensor.contiguous().flatten();
      const float* data = flat.const_data_ptr<float>();
      text += parameter.name;
      for (int64_t i = 0; i < flat.numel(); ++i) text += fmt::format(" {:a}", data[i]);
    }
    texts[fs::path(run).filename().string()] = text;
  }
  return texts;
}

TEST(SweepCommand, DryRunListsEveryCellWithItsCostAndMakesNothing) {
  const TinySweep sweep(kTwoByTwo + "batch_size = [32, 1024]\n");
  const BinaryResult result = sweep.run({"--dry-run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("8 runs, 18560 image gradients"));  // 4 x 20 updates of 32 and of 200 distinct images
  EXPECT_THAT(result.out, HasSubstr("expected wall time with 2 worker(s)"));
  EXPECT_FALSE(fs::exists(sweep.path("out")));
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
  const BinaryResult second = sweep.run();
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("3 runs were done before"));
  EXPECT_TRUE(fs::exists(run + "/probes/end.noise_scale.h5"));  // a probe that is missing is done, the training is not
  EXPECT_EQ(fs::last_write_time(run + "/run.h5"), written);
}

TEST(SweepCommand, ProbesWhatWasTrainedWithout) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(sweep.runs()[0] + "/probes/end.noise_scale.h5"));
  ASSERT_EQ(sweep.run().exit_code, 0);
  EXPECT_TRUE(fs::exists(sweep.runs()[0] + "/probes/end.noise_scale.h5"));
}

// One cell wants the embedded images, which BASIN_DATA hides at first.
const std::string kOneCellWithoutData =
    "[sweep]\nbatch_size = [16, 32, 64]\n[[sweep.set]]\nwhen = { batch_size = 32 }\nset = { data.set = 'cifar10-5k' }\n";

TEST(SweepCommand, AFailedCellLeavesTheOthersAloneAndIsRetriedOnRequest) {
  const TinySweep sweep(kOneCellWithoutData);
  ::setenv("BASIN_DATA", "/nonexistent", 1);
  const BinaryResult first = sweep.run();
  ::unsetenv("BASIN_DATA");
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_THAT(first.err, HasSubstr("missing data"));
  std::vector<std::string> statuses = sweep.statuses();
  std::sort(statuses.begin(), statuses.end());
  EXPECT_EQ(statuses, (std::vector<std::string>{"failed", "finished", "finished"}));
  EXPECT_TRUE(fs::exists(sweep.path("out/sweep.h5")));

  const BinaryResult second = sweep.run();  // without being asked it isn't run again
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("failed before"));
  const BinaryResult third = sweep.run({"--retry", "failed"});
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(3, "finished"));
}

TEST(SweepCommand, FailFastStopsAtTheFirstFailure) {
  const TinySweep sweep(kOneCellWithoutData + "[[sweep.set]]\nwhen = { batch_size = [16, 64] }\nset = { updates = 100000 }\n");
  ::setenv("BASIN_DATA", "/nonexistent", 1);
  // The cell that fails is the shortest: with three workers it runs beside the long ones.
  const BinaryResult result = sweep.run({"--jobs", "3", "--fail-fast"});
  ::unsetenv("BASIN_DATA");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--fail-fast: stopping"));
  std::vector<std::string> statuses = sweep.statuses();
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "failed"), 1);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "finished"), 0);
}

// The pid of a worker that is training, from its status file.
pid_t training_worker(const TinySweep& sweep) {
  for (int i = 0; i < 3000; ++i) {
    if (fs::exists(sweep.path("out/runs"))) {
      for (const std::string& run : sweep.runs()) {
        if (!fs::exists(run + "/status.json")) continue;
        const RunStatus status = read_status(run + "/status.json");
        if (status.status == "running" && status.pid > 0) return static_cast<pid_t>(status.pid);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("no worker began to train");
}

TEST(SweepCommand, AKilledWorkerTakesDownItsCellAlone) {
  const TinySweep sweep("[sweep]\nseed = [1, 2]\n[[sweep.set]]\nwhen = { seed = 1 }\nset = { updates = 3000 }\n");
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

TEST(SweepCommand, CtrlCLeavesResumableStates) {
  const TinySweep sweep("[sweep]\nseed = [1, 2, 3]\n[[sweep.set]]\nset = { updates = 1500 }\n");
  RunningBinary process(sweep.arguments());
  training_worker(sweep);
  process.send(SIGINT);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the same command goes on from here"));
  for (const std::string& status : sweep.statuses()) {
    EXPECT_TRUE(status == "interrupted" || status == "queued" || status == "running") << status;
  }
  const BinaryResult second = sweep.run();
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(sweep.statuses(), std::vector<std::string>(3, "finished"));
}

TEST(SweepCommand, DivergenceIsAResult) {
  const TinySweep sweep("[sweep]\nlearning_rate = [0.05, 1e9]\n");
  const BinaryResult result = sweep.run({"--no-probes"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> statuses = sweep.statuses();
  std::sort(statuses.begin(), statuses.end());
  EXPECT_EQ(statuses, (std::vector<std::string>{"diverged", "finished"}));
}

TEST(SweepCommandFolder, RefusesAnotherStudyAndExtendsItsOwn) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  ASSERT_EQ(sweep.run({"--no-probes"}).exit_code, 0);
  const BinaryResult other = sweep.run({"--no-probes", "--set", "updates=7"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds another study"));
  EXPECT_THAT(other.err, Not(HasSubstr("--extend")));
  const BinaryResult more = sweep.run({"--no-probes", "--set", "seed=[1, 2]"});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("--extend"));
  const BinaryResult extended = sweep.run({"--no-probes", "--set", "seed=[1, 2]", "--extend"});
  EXPECT_EQ(extended.exit_code, 0) << extended.err;
  EXPECT_EQ(sweep.statuses().size(), 2u);
  // The frozen study is complete in itself.
  EXPECT_EQ(run_binary({"sweep", sweep.path("out/study.toml"), "--out", sweep.path("out"), "--no-probes"}).exit_code, 0);
}

TEST(SweepCommandFolder, RefusesRunsOfSomethingElse) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  fs::create_directories(sweep.path("out/runs/0123456789ab"));
  const BinaryResult result = sweep.run();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("holds runs of something else"));
}

TEST(SweepCommandFolder, RefusesAFolderInUse) {
  const TinySweep sweep("[sweep]\nseed = [1]\n");
  fs::create_directories(sweep.path("out"));
  const FileLock lock(sweep.path("out/lock"), "the test");
  const BinaryResult result = sweep.run();
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("is in use by another process"));
}

TEST(SweepCommandFolder, BadStudiesMakeNoFolder) {
  const TinySweep sweep("[sweep]\nbatch_size = [0]\n");
  const BinaryResult result = sweep.run();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("batch_size = 0 violates batch_size >= 1"));
  EXPECT_FALSE(fs::exists(sweep.path("out")));
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
}

// Sweeps into two folders of one study, the second killed at random moments and started again each time. The last start
// must end with the very numbers of the undisturbed sweep.
void expect_kills_change_nothing(const TinySweep& sweep, int kills, unsigned seed) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(sweep.run({}, "undisturbed").exit_code, 0);
  const double undisturbed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // All delays together stay below the undisturbed time, so no start but the last can come to the end.
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> delay(0, 1.8 * undisturbed / (2.0 * kills));
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    RunningBinary process(sweep.arguments());
    std::this_thread::sleep_for(std::chrono::duration<double>(delay(random)));
    process.send(SIGKILL);
    killed += process.wait().exit_code == 128 + SIGKILL;
  }
  EXPECT_EQ(killed, kills) << "the sweep ended before it could be killed";
  const BinaryResult last = sweep.run();
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const auto expected = numbers(sweep, "undisturbed"), found = numbers(sweep, "out");
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, text] : expected) EXPECT_TRUE(found.at(name) == text) << name << "\n" << text << "\n" << found.at(name);
}

TEST(SweepCommandKilled, ThreeTimesEndsWithTheSameNumbers) {
  expect_kills_change_nothing(TinySweep(kTwoByTwo + "[[sweep.set]]\nset = { updates = 2000 }\n"), 3, 1);
}

// A sweep of about a minute on one worker: eight cells of every kind of end and three probes.
TEST(SlowSweepCommandKilled, TwentyTimesEndsWithTheSameNumbers) {
  const std::string study =
      "[sweep]\noptimizer = ['sgd', 'lars', 'lamb']\nprotocol = ['A-updates', 'B']\nseed = [1, 2]\n"
      "[[sweep.set]]\nset = { updates = 6000, target_loss = 0.5, max_gradients = 200000, check_every = 2000, "
      "loss_levels = [1.5], evaluate_every = 20000, probes.at = ['end', 'loss'] }\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lars' }\nset = { learning_rate = 1.0 }\n"
      "[[sweep.set]]\nwhen = { optimizer = 'lamb' }\nset = { learning_rate = 0.005 }\n";
  expect_kills_change_nothing(TinySweep(study), 20, 2);
}

}  // namespace
}  // namespace basin::testing
