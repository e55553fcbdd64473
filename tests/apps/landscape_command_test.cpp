// `basin landscape` from outside: exact at the checkpoints, in the right orientation, resumed to the same
// bits, refused where a file is of another surface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "landscape/surface_file.h"
#include "runs/surfaces/registry.h"
#include "tests/apps/stored_numbers.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LandscapeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(study_.train({"--set", "checkpoint_every=2"}).exit_code, 0);
    run_ = study_.run_folder();
  }

  std::string checkpoint(const std::string& label) const { return run_ + "/ckpt/" + label + ".h5"; }
  std::string out(const std::string& name) const { return study_.path(name + "/surface.h5"); }

  // `basin landscape` with small sets, one thread.
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> words = {"landscape",           "--set", "runtime.threads=1",       "--set",
                                      "landscape.subset=50", "--set", "landscape.test_subset=30"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  BinaryResult landscape(const std::vector<std::string>& more) const { return run_binary(arguments(more)); }

  const TinyStudy study_;
  std::string run_;
};

const SurfaceColumn& column(const SurfacePlot& plot, const std::string& name) {
  for (const SurfaceColumn& column : plot.columns) {
    if (column.name == name) return column;
  }
  throw std::runtime_error("no column " + name);
}

// What a probe says about the same 50 examples: by other code, on as many threads.
double subset_loss(const std::string& run, const std::string& label) {
  const BinaryResult result = run_binary({"probe", run, "--only", "noise_scale", "--checkpoint", label,
                                          "--subset", "50", "--set", "runtime.threads=1"});
  if (result.exit_code != 0) throw std::runtime_error(result.err);
  const std::string probe = fmt::format("{}/probes/{}.noise_scale.h5", run, label);
  for (const auto& [name, value] : read_probe_file(probe).attributes) {
    if (name == "subset_loss") return std::get<double>(value);
  }
  throw std::runtime_error("no subset_loss");
}

// Against what a probe says about the same examples at both checkpoints; equal to the last bit.
TEST_F(LandscapeCommand, LineIsExactAtBothCheckpoints) {
  const BinaryResult result =
      landscape({checkpoint("start"), checkpoint("end"), "--kind", "line", "--set", "line.points=5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string id = fs::path(run_).filename();
  const std::string path = study_.path("out") + "/landscape/line." + id + ".start." + id + ".end.h5";
  EXPECT_THAT(result.out, HasSubstr(path + "  ok  7 points"));
  const SurfacePlot line = read_surface_file(path).plots.at(0);
  EXPECT_THAT(line.axes[0].values, ElementsAre(-0.25, 0, 0.125, 0.5, 0.875, 1, 1.25));
  EXPECT_EQ(column(line, "train_loss").values[1], subset_loss(run_, "start"));
  EXPECT_EQ(column(line, "train_loss").values[5], subset_loss(run_, "end"));
  EXPECT_NE(column(line, "test_loss").values[5], column(line, "train_loss").values[5]);
  EXPECT_FALSE(fs::exists(path + ".tiles"));
}

// A plane of three checkpoints that isn't square against lines along its edges and through it.
TEST_F(LandscapeCommand, PlaneLiesTheRightWayRound) {
  const std::vector<std::string> three = {checkpoint("start"), checkpoint("u000004"), checkpoint("end")};
  ASSERT_EQ(landscape({three[0], three[1], three[2], "--kind", "plane", "--out", out("p"), "--set",
                       "plane.alpha=[0, 1]", "--set", "plane.beta=[0, 2]", "--set", "plane.alpha_points=3",
                       "--set", "plane.beta_points=5"})
                .exit_code,
            0);
  ASSERT_EQ(landscape({three[0], three[1], "--kind", "line", "--out", out("a"), "--set", "line.alpha=[0, 1]",
                       "--set", "line.points=3"})
                .exit_code,
            0);
  ASSERT_EQ(landscape({three[0], three[2], "--kind", "line", "--out", out("b"), "--set", "line.alpha=[0, 2]",
                       "--set", "line.points=5"})
                .exit_code,
            0);
  const SurfacePlot plane = read_surface_file(out("p")).plots.at(0),
                    across = read_surface_file(out("a")).plots.at(0),
                    upwards = read_surface_file(out("b")).plots.at(0);
  EXPECT_EQ(plane.axes[0].name, "beta");
  ASSERT_EQ(plane.axes[0].values.size(), 5u);
  ASSERT_EQ(plane.axes[1].values.size(), 3u);
  const std::vector<double>&loss = column(plane, "train_loss").values,
        &a = column(across, "train_loss").values, &b = column(upwards, "train_loss").values;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(loss[i], a[i]) << i;
  for (size_t j = 0; j < 5; ++j) EXPECT_EQ(loss[j * 3], b[j]) << j;
}

TEST_F(LandscapeCommand, RandomDirectionsHaveABandAndASeed) {
  const std::vector<std::string> few = {
      checkpoint("end"), "--kind", "line", "--set", "line.points=3", "--set", "line.directions=4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), few.begin(), few.end());
    return landscape(more);
  };
  ASSERT_EQ(with({"--out", out("1")}).exit_code, 0);
  ASSERT_EQ(with({"--out", out("2"), "--set", "landscape.seed=2"}).exit_code, 0);
  const SurfaceRecord first = read_surface_file(out("1")), second = read_surface_file(out("2"));
  const std::vector<double>& loss = column(first.plots[0], "train_loss").values;
  ASSERT_EQ(loss.size(), 12u);
  EXPECT_EQ(loss[1], loss[4]);  // alpha = 0 along each
  EXPECT_NE(loss[0], loss[3]);
  EXPECT_NE(loss[0], column(second.plots[0], "train_loss").values[0]);
  EXPECT_NEAR(column(first.plots[1], "train_loss").values[0], (loss[0] + loss[3] + loss[6] + loss[9]) / 4,
              1e-15);
  EXPECT_EQ(column(first.plots[1], "train_loss_error").values[1], 0);
}

TEST_F(LandscapeCommand, TrajectoryEndsAtItsOrigin) {
  const BinaryResult result = landscape({run_, "--kind", "trajectory", "--out", out("t"), "--set",
                                         "trajectory.alpha_points=4", "--set", "trajectory.beta_points=3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const SurfaceRecord record = read_surface_file(out("t"));
  const SurfacePlot& path = record.plots.at(1);
  EXPECT_THAT(path.axes[0].values, ElementsAre(0, 2, 4, 6));  // end is u000006: one of the two
  EXPECT_NEAR(column(path, "alpha").values.back(), 0, 1e-12);
  EXPECT_NEAR(column(path, "distance").values.back(), 0, 1e-12);
  EXPECT_GT(column(path, "alpha").values.front(), 0.01);
  // The origin is the last checkpoint: its very loss stands there.
  const SurfacePlot& plane = record.plots[0];
  const auto at = [&](const SurfaceAxis& axis) {
    return static_cast<size_t>(std::find(axis.values.begin(), axis.values.end(), 0.0) - axis.values.begin());
  };
  const size_t cell = at(plane.axes[0]) * plane.axes[1].values.size() + at(plane.axes[1]);
  ASSERT_LT(cell, plane.state.size());
  EXPECT_EQ(column(plane, "train_loss").values[cell], subset_loss(run_, "end"));
}

TEST_F(LandscapeCommand, CellsThatAreNotFiniteSurvive) {
  Checkpoint far = read_checkpoint(checkpoint("end"));
  for (ParameterInfo& parameter : far.parameters) parameter.tensor.fill_(3e38);
  write_checkpoint(checkpoint("far"), far);
  const std::vector<std::string> command = {
      checkpoint("end"), checkpoint("far"),   "--kind", "line",         "--out", out("n"),
      "--set",           "line.alpha=[0, 1]", "--set",  "line.points=3"};
  const BinaryResult result = landscape(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 of them not finite"));
  const SurfacePlot line = read_surface_file(out("n")).plots.at(0);
  EXPECT_THAT(line.state, ElementsAre(1, 2, 2));
  EXPECT_TRUE(std::isfinite(column(line, "train_loss").values[0]));
  EXPECT_TRUE(std::isnan(column(line, "train_loss").values[1]) &&
              std::isnan(column(line, "train_acc").values[2]));
  EXPECT_THAT(landscape(command).out, HasSubstr("measured before"));
}

TEST_F(LandscapeCommand, AnotherSurfaceOfTheSameNameIsRefused) {
  const std::vector<std::string> command = {
      checkpoint("end"),    "--kind", "plane", "--out", out("p"), "--set", "plane.alpha_points=3", "--set",
      "plane.beta_points=3"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    return landscape(words);
  };
  ASSERT_EQ(with({}).exit_code, 0);
  const auto written = fs::last_write_time(out("p"));
  for (const auto& [set, said] :
       {std::pair<std::string, std::string>{"landscape.seed=7", "seed = 1 there, seed = 7 asked for"},
        {"plane.norm=layer", "plane.norm = \"filter\" there"},
        {"landscape.subset=40", "train_examples = 50 there"}}) {
    const BinaryResult refused = with({"--set", set});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, ::testing::AllOf(HasSubstr(out("p")), HasSubstr(said)));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  // The same name and options, but the checkpoint was trained on.
  Checkpoint changed = read_checkpoint(checkpoint("end"));
  changed.parameters.front().tensor.flatten()[0] += 0.5;
  write_checkpoint(checkpoint("end"), changed);
  EXPECT_THAT(with({}).err, HasSubstr("checkpoints_sha256"));
  EXPECT_EQ(fs::last_write_time(out("p")), written);
  EXPECT_EQ(with({"--force"}).exit_code, 0);
  EXPECT_NE(fs::last_write_time(out("p")), written);
}

TEST_F(LandscapeCommand, RefusesBadInputInOneLine) {
  const auto expect = [](const BinaryResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  expect(landscape({checkpoint("end"), "--kind", "cube"}), 2, "cube");
  expect(landscape({checkpoint("end"), checkpoint("end"), "--kind", "trajectory"}), 2,
         "takes 1 checkpoint, not 2");
  expect(landscape({checkpoint("no"), "--kind", "plane"}), 4, "no.h5");
  expect(landscape({checkpoint("end"), "--kind", "plane", "--set", "plane.alpha=[1, -1]"}), 2, "plane.alpha");
  expect(landscape({run_, "--kind", "trajectory", "--set", "trajectory.at=[\"start\", \"end\"]"}), 2,
         "three checkpoints");
  Checkpoint wider = read_checkpoint(checkpoint("end"));
  wider.parameters.front().tensor = at::zeros({9, 3});
  write_checkpoint(checkpoint("wider"), wider);
  expect(landscape({checkpoint("end"), checkpoint("wider"), "--kind", "line"}), 4,
         "wider.h5: another network");
}

// ---- resumed

// Cells slow enough to be interrupted among them: all examples, 15 x 13 points.
std::vector<std::string> slow_plane(const std::string& checkpoint, const std::string& out) {
  return {"landscape", checkpoint,
          "--kind",    "plane",
          "--out",     out,
          "--set",     "plane.alpha_points=15",
          "--set",     "plane.beta_points=13",
          "--set",     "landscape.subset=0",
          "--set",     "landscape.test_subset=0",
          "--set",     "landscape.micro_batch=1",
          "--set",     "runtime.threads=1"};
}

bool wait_for_tile(RunningBinary& process, const std::string& out, const std::string& tile) {
  const std::string path = fmt::format("{}.tiles/{}.h5", out, tile);
  while (process.alive()) {
    if (fs::exists(path)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST_F(LandscapeCommand, KilledTwiceAndGoneOnWithMoreProcessesHasTheSameBits) {
  ASSERT_EQ(run_binary(slow_plane(checkpoint("end"), out("undisturbed"))).exit_code, 0);
  const std::string path = out("disturbed");
  for (const char* tile : {"000000", "000003"}) {
    RunningBinary process(slow_plane(checkpoint("end"), path));
    ASSERT_TRUE(wait_for_tile(process, path, tile)) << process.wait().err;
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().exit_code, 128 + SIGKILL);
    EXPECT_FALSE(fs::exists(path));
  }
  std::vector<std::string> pool = slow_plane(checkpoint("end"), path);
  pool.insert(pool.end(), {"--jobs", "2"});
  const BinaryResult last = run_binary(pool);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.err, ::testing::ContainsRegex("[0-9]+ of them done before"));
  const auto expected = stored_numbers(study_.path("undisturbed")),
             found = stored_numbers(study_.path("disturbed"));
  EXPECT_THAT(differences(found, expected), IsEmpty());
  EXPECT_TRUE(expected.count("surface.h5:/plane/train_loss"));
  EXPECT_FALSE(fs::exists(path + ".tiles"));
}

TEST_F(LandscapeCommand, CtrlCLeavesWhatIsThereAndGoesOn) {
  const std::string path = out("s");
  // Two seconds of two processes: both are still at work when the signal comes, on a busy machine too.
  std::vector<std::string> alone = slow_plane(checkpoint("end"), path);
  alone.insert(alone.end(), {"--set", "plane.alpha_points=21", "--set", "plane.beta_points=19"});
  std::vector<std::string> pool = alone;
  pool.insert(pool.end(), {"--jobs", "2"});
  for (const std::vector<std::string>& command : {alone, pool}) {
    RunningBinary process(command);
    const int64_t before = fs::exists(path) ? 4 : 0;
    ASSERT_TRUE(wait_for_tile(process, path, fmt::format("{:06d}", before))) << process.wait().err;
    process.send(SIGINT);
    const BinaryResult result = process.wait();
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("the same command resumes from there"));
    const SurfaceRecord partial = read_surface_file(path);
    EXPECT_EQ(partial.status(), SurfaceStatus::partial);
    const std::vector<uint8_t>& state = partial.plots[0].state;
    EXPECT_EQ(state.front(), static_cast<uint8_t>(CellState::ok));
    EXPECT_EQ(std::isnan(partial.plots[0].columns[0].values.back()),
              state.back() == static_cast<uint8_t>(CellState::todo));
  }
  ASSERT_EQ(run_binary(pool).exit_code, 0);
  EXPECT_EQ(read_surface_file(path).status(), SurfaceStatus::ok);
}

TEST_F(LandscapeCommand, TwoInvocationsShareOneSurface) {
  const std::string path = out("s");
  RunningBinary first(slow_plane(checkpoint("end"), path)), second(slow_plane(checkpoint("end"), path));
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  ASSERT_EQ(run_binary(slow_plane(checkpoint("end"), out("alone"))).exit_code, 0);
  EXPECT_THAT(differences(stored_numbers(study_.path("s")), stored_numbers(study_.path("alone"))), IsEmpty());
  EXPECT_FALSE(fs::exists(path + ".tiles"));
}

TEST(LandscapeKinds, NamesAreDistinctAndHaveHelp) {
  std::set<std::string> names;
  for (const LandscapeKind& kind : landscape_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_FALSE(kind.help.empty());
    EXPECT_LE(kind.least, kind.most);
  }
}

}  // namespace
}  // namespace basin::testing
