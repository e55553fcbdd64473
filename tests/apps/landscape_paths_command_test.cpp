// `basin landscape` --kind barrier, curve and radial, seen from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "core/seed.h"
#include "data/load.h"
#include "io/checkpoint.h"
#include "landscape/surface_file.h"
#include "models/symmetries.h"
#include "runs/parts.h"
#include "study/run_options.h"
#include "tests/apps/tiny_study.h"
#include "trainers/trainer.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// The runs of two seeds.
class LandscapePaths : public ::testing::Test {
 protected:
  void train(const std::vector<std::string>& more) {
    for (const char* seed : {"seed=1", "seed=2"}) {
      std::vector<std::string> arguments = {"--set", seed};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const BinaryResult result = study_.train(arguments);
      if (result.exit_code != 0) throw std::runtime_error(result.err);
    }
    for (const auto& run : fs::directory_iterator(study_.path("out/runs")))
      ends_.push_back((run.path() / "ckpt/end.h5").string());
  }

  std::vector<std::string> arguments(const std::string& kind, const std::vector<std::string>& files,
                                     const std::string& out, const std::vector<std::string>& sets) const {
    std::vector<std::string> arguments = {"landscape"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(),
                     {"--kind", kind, "--out", study_.path(out), "--set", "runtime.threads=1"});
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return arguments;
  }
  BinaryResult run(const std::string& kind, const std::vector<std::string>& files, const std::string& out,
                   const std::vector<std::string>& sets = {}) const {
    return run_binary(arguments(kind, files, out, sets));
  }
  SurfaceRecord surface(const std::string& kind, const std::vector<std::string>& files,
                        const std::string& out, const std::vector<std::string>& sets = {}) const {
    const BinaryResult result = run(kind, files, out, sets);
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    return read_surface_file(study_.path(out));
  }

  /// The first run's network with its units in another order, as a checkpoint.
  std::string twin() const {
    Checkpoint checkpoint = read_checkpoint(ends_[0]);
    const RunOptions options = run_options_from(parse_toml(checkpoint.config, "config"), {});
    const std::shared_ptr<Model> model =
        build_model(options, load_dataset(options.data), at::kFloat, at::Device(at::kCPU));
    restore_model(*model, checkpoint);
    at::Generator generator = make_generator(8);
    for (const UnitGroup& group : model->unit_groups()) {
      apply_symmetry(unit_permutation(group, at::randperm(group.units, generator, at::kLong)),
                     named_tensors(*model));
    }
    for (size_t i = 0; i < checkpoint.parameters.size(); ++i)
      checkpoint.parameters[i].tensor = model->parameter_table()[i].tensor.detach();
    checkpoint.buffers = model->buffer_table();
    write_checkpoint(study_.path("twin.h5"), checkpoint);
    return study_.path("twin.h5");
  }

  TinyStudy study_;
  std::vector<std::string> ends_;
};

const SurfacePlot& plot_named(const SurfaceRecord& record, const std::string& name) {
  for (const SurfacePlot& plot : record.plots)
    if (plot.name == name) return plot;
  throw std::runtime_error("no plot " + name);
}

const std::vector<double>& values_of(const SurfacePlot& plot, const std::string& name) {
  for (const SurfaceColumn& column : plot.columns)
    if (column.name == name) return column.values;
  throw std::runtime_error("no column " + name);
}

OptionValue attribute(const SurfacePlot& plot, const std::string& wanted) {
  for (const auto& [name, value] : plot.attributes)
    if (name == wanted) return value;
  throw std::runtime_error("no attribute " + wanted);
}

/// The value of a cell of the summary.
double read_off(const SurfaceRecord& record, const std::string& path, const std::string& quantity,
                const std::string& what) {
  const SurfacePlot& summary = plot_named(record, "summary");
  const auto index = [&](size_t axis, const std::string& label) {
    const std::vector<std::string>& labels = summary.axes[axis].labels;
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found == labels.end()) throw std::runtime_error("no " + label);
    return static_cast<size_t>(found - labels.begin());
  };
  return values_of(summary, what)[index(0, path) * summary.axes[1].values.size() + index(1, quantity)];
}

TEST_F(LandscapePaths, NoBarrierToAPermutedTwinOnceMatched) {
  train({"--set", "mlp.norm=batch", "--set", "ghost_batch=32", "--set", "updates=30"});
  const SurfaceRecord record = surface("barrier", {ends_[0], twin()}, "barrier.h5");
  EXPECT_EQ(record.status(), SurfaceStatus::ok);
  EXPECT_EQ(
      record.plots[0].axes[0].labels,
      (std::vector<std::string>{"as-is-reset", "as-is-interpolate", "matched-reset", "matched-interpolate"}));
  EXPECT_EQ(record.plots[0].axes[1].values.size(), 25u);
  for (const char* quantity : {"train_loss", "train_error", "test_loss", "test_error"}) {
    for (const char* path : {"matched-reset", "matched-interpolate"}) {
      // One network all along; the chord has the rounding of three products in float64.
      EXPECT_NEAR(read_off(record, path, quantity, "barrier"), 0, 1e-14) << path << ", " << quantity;
      EXPECT_NEAR(read_off(record, path, quantity, "excess_error"), 0, 1e-14) << path << ", " << quantity;
    }
  }
  for (const char* path : {"as-is-reset", "as-is-interpolate"})
    EXPECT_GT(read_off(record, path, "train_loss", "barrier"), 0.01) << path;
  EXPECT_EQ(std::get<double>(attribute(record.plots[0], "matching_distance_after")), 0);
  EXPECT_GT(std::get<double>(attribute(record.plots[0], "matching_distance_before")), 0);
  ASSERT_EQ(record.vectors.size(), 1u);
  EXPECT_TRUE(at::equal(std::get<0>(record.vectors[0].second.sort()), at::arange(8)));
}

TEST_F(LandscapePaths, SummaryIsReadOffTheGrid) {
  train({});
  const SurfaceRecord record = surface("barrier", ends_, "barrier.h5", {"barrier.points=8"});
  const SurfacePlot& grid = record.plots[0];
  EXPECT_EQ(grid.axes[0].labels, (std::vector<std::string>{"as-is", "matched"}));  // no batch statistics
  const std::vector<double>& t = grid.axes[1].values;
  ASSERT_EQ(t.size(), 9u);  // 1/2 is added
  EXPECT_EQ(t[4], 0.5);
  for (size_t path = 0; path < 2; ++path) {
    const auto at = [&](const char* name, size_t i) { return values_of(grid, name)[path * 9 + i]; };
    const std::string label = grid.axes[0].labels[path];
    for (const bool is_error : {false, true}) {
      const auto value = [&](size_t i) { return is_error ? 1 - at("test_acc", i) : at("test_loss", i); };
      size_t highest = 1;
      const auto excess = [&](size_t i) { return value(i) - ((1 - t[i]) * value(0) + t[i] * value(8)); };
      for (size_t i = 2; i < 8; ++i)
        if (excess(i) > excess(highest)) highest = i;
      const auto found = [&](const char* what) {
        return read_off(record, label, is_error ? "test_error" : "test_loss", what);
      };
      // A rounding or two of numbers of order 1; for the middle, a mean of differences for a difference of
      // means.
      EXPECT_NEAR(found("excess"), excess(highest), 1e-14);
      EXPECT_NEAR(found("barrier"), std::max(0.0, excess(highest)), 1e-14);
      EXPECT_EQ(found("excess_t"), t[highest]);
      EXPECT_NEAR(found("middle_excess"), excess(4), 1e-12);
      EXPECT_GT(found("excess_error"), 0);
      if (!is_error) {
        const double share = t[highest];
        EXPECT_LT(found("excess_error"), at("test_loss_error", highest) +
                                             (1 - share) * at("test_loss_error", 0) +
                                             share * at("test_loss_error", 8));  // the triangle's inequality
      }
      // The line has even steps.
      double sum = 0;
      for (size_t i = 0; i + 1 < 9; ++i) sum += (value(i) + value(i + 1)) / 2 * (t[i + 1] - t[i]);
      EXPECT_NEAR(found("mean_along"), sum, 1e-12);
    }
  }
}

TEST_F(LandscapePaths, CurveHasTheCheckpointsAtItsEnds) {
  train({"--set", "mlp.norm=batch", "--set", "ghost_batch=32", "--set", "updates=40"});
  const std::vector<std::string> sets = {"curve.epochs=40", "curve.batch_size=50", "curve.learning_rate=0.05",
                                         "curve.points=11"};
  const SurfaceRecord record = surface("curve", ends_, "curve.h5", sets);
  const SurfacePlot& grid = record.plots[0];
  EXPECT_EQ(grid.axes[0].labels, (std::vector<std::string>{"bezier", "line"}));
  for (const SurfaceColumn& column : grid.columns) {
    EXPECT_EQ(column.values[0], column.values[11]) << column.name;
    EXPECT_EQ(column.values[10], column.values[21]) << column.name;
  }
  EXPECT_EQ(std::get<std::string>(attribute(grid, "training_status")), "finished");
  EXPECT_EQ(std::get<std::vector<double>>(attribute(grid, "epoch_losses")).size(), 40u);
  // What was trained is lower than what was not.
  EXPECT_LT(read_off(record, "bezier", "train_loss", "mean_along"),
            read_off(record, "line", "train_loss", "mean_along"));
  const auto lengths = std::get<std::vector<double>>(attribute(plot_named(record, "summary"), "length"));
  const auto distances =
      std::get<std::vector<double>>(attribute(plot_named(record, "summary"), "distance_of_ends"));
  EXPECT_GT(lengths[0], lengths[1]);
  EXPECT_NEAR(lengths[1], distances[1], 1e-9 * distances[1]);  // ten steps' rounding
  EXPECT_EQ(distances[0], distances[1]);
  EXPECT_EQ(record.vectors.at(0).first, "bend_1");
}

TEST_F(LandscapePaths, AKilledCurveGoesOnWithTheSameBits) {
  train({});
  const std::vector<std::string> sets = {"curve.epochs=60", "curve.batch_size=10", "curve.points=5",
                                         "curve.curve=chain", "curve.bends=2"};
  const SurfaceRecord undisturbed = surface("curve", ends_, "undisturbed.h5", sets);
  const std::string state = study_.path("killed.h5") + ".tiles/curve.h5";
  RunningBinary running(arguments("curve", ends_, "killed.h5", sets));
  while (running.alive() && !fs::exists(state)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  running.send(SIGKILL);
  ASSERT_EQ(running.wait().exit_code, 128 + SIGKILL);
  ASSERT_LT(read_checkpoint(state).update, 1200) << "killed too late to be a test";
  const SurfaceRecord resumed = surface("curve", ends_, "killed.h5", sets);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::equal(resumed.vectors[i].second, undisturbed.vectors[i].second));
  for (size_t plot = 0; plot < 2; ++plot) {
    for (size_t i = 0; i < resumed.plots[plot].columns.size(); ++i)
      EXPECT_EQ(resumed.plots[plot].columns[i].values, undisturbed.plots[plot].columns[i].values);
  }
  EXPECT_EQ(attribute(resumed.plots[0], "epoch_losses"), attribute(undisturbed.plots[0], "epoch_losses"));
}

TEST_F(LandscapePaths, RadialProfileRisesWithDelta) {
  train({});
  const SurfaceRecord record = surface("radial", {ends_[0]}, "radial.h5", {"radial.directions=4"});
  const std::vector<double>&radius = values_of(record.plots[0], "radius"),
        &reached = values_of(record.plots[0], "reached");
  ASSERT_EQ(radius.size(), 12u);
  for (size_t direction = 0; direction < 4; ++direction) {
    EXPECT_GT(radius[3 * direction], 0);
    for (size_t delta = 1; delta < 3; ++delta)
      EXPECT_GT(radius[3 * direction + delta], radius[3 * direction + delta - 1]);
  }
  EXPECT_EQ(reached, std::vector<double>(12, 1));
  const SurfacePlot& profile = plot_named(record, "profile");
  EXPECT_EQ(std::get<std::vector<std::string>>(attribute(profile, "status")),
            std::vector<std::string>(3, "ok"));
  EXPECT_EQ(std::get<int64_t>(attribute(profile, "weights_moved")), 3072 * 8 + 8 + 8 * 10 + 10);
  for (size_t delta = 0; delta < 3; ++delta) {
    double sum = 0;
    for (size_t direction = 0; direction < 4; ++direction) sum += std::log(radius[3 * direction + delta]) / 4;
    EXPECT_NEAR(values_of(profile, "mean_log_radius")[delta], sum, 1e-14);  // the sum of four
  }

  // So near that no direction has risen by 1 there.
  const SurfaceRecord near =
      surface("radial", {ends_[0]}, "near.h5", {"radial.directions=4", "radial.most=0.05"});
  EXPECT_TRUE(std::isnan(values_of(near.plots[0], "radius")[2]));
  EXPECT_EQ(values_of(near.plots[0], "reached")[2], 0);
  EXPECT_EQ(std::get<std::vector<std::string>>(attribute(plot_named(near, "profile"), "status"))[2],
            "not_resolved");
  EXPECT_TRUE(std::isnan(values_of(plot_named(near, "profile"), "mean_log_radius")[2]));
}

TEST_F(LandscapePaths, ACurveTakesBatchStatisticsOverItsWholeBatch) {
  train({"--set", "mlp.norm=batch", "--set", "ghost_batch=32"});
  const std::vector<std::string> sets = {"curve.batch_size=51", "landscape.micro_batch=50", "curve.epochs=1"};
  const BinaryResult result = run("curve", ends_, "curve.h5", sets);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("curve.batch_size = 51 violates"));
  EXPECT_THAT(result.err, HasSubstr("landscape.micro_batch = 50"));
}

TEST_F(LandscapePaths, ToldInOneLineWhatCannotBe) {
  train({"--set", "mlp.norm=group", "--set", "mlp.groups=2"});
  BinaryResult result = run("barrier", ends_, "barrier.h5", {"barrier.matching=['weights']"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no line is left"));
  result = run("barrier", {ends_[0]}, "barrier.h5");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("takes 2 checkpoints, not 1"));
  result = run("curve", ends_, "curve.h5", {"curve.bends=0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("curve.bends = 0 violates"));
}

}  // namespace
}  // namespace basin::testing
