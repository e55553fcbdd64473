// What a forecast takes from the files of small runs: written here by hand, and the sums by hand too.
#include "forecast/small_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "forecast/evidence.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::HasSubstr;

class SmallRunFiles : public ::testing::Test {
 protected:
  std::string folder_of(const std::string& id) const { return folder_ / ("out/runs/" + id); }
  std::string out() const { return folder_ / "out"; }

  /// 4 updates at 0.1 after one at half of it; the target is reached in the last.
  void add_run(const std::string& id, const std::string& options = "", RunState status = RunState::finished,
               int64_t examples = 1000) const {
    std::filesystem::create_directories(folder_of(id) + "/probes");
    write_file_atomically(folder_of(id) + "/config.toml",
                          "protocol = \"B\"\nbatch_size = 64\nlearning_rate = 0.1\n" + options);
    RunRecord record;
    record.header.run_id = id;
    record.header.config = "batch_size = 64\n";
    record.header.options = {{"peak_learning_rate", 0.1}};
    record.header.data = {{"n_train", examples}};
    record.status = status;
    record.summary = {{"steps_to_target", 5.0}};
    record.tables["train"] = {
        "train",
        "updates",
        {{"update", "1", "update", "", 1, {}}, {"learning_rate", "1", "rate", "", 1, {}}},
        {1, 0.05, 2, 0.1, 3, 0.1, 4, 0.1, 5, 0.1}};
    write_run_file(folder_of(id) + "/run.h5", record);
  }

  void add_probe(const std::string& id, const std::string& probe, const std::string& quantity, double value,
                 const std::string& checkpoint = "end", double limit = 4) const {
    ProbeRecord record;
    record.run_id = id;
    record.probe = probe;
    record.checkpoint = checkpoint;
    record.attributes = {{"update", int64_t{5}},
                         {"n_examples", int64_t{100}},
                         {"gradients", 3.0},
                         {"hvps", int64_t{2}},
                         {"stability_limit", NAN},  // of LARS and LAMB
                         {"frozen_stability_limit", limit}};
    record.quantities = {{.name = quantity,
                          .definition = "q",
                          .units = "1",
                          .long_name = "q",
                          .value = {value},
                          .uncertainty = {0}}};
    write_probe_file(folder_of(id) + "/probes/" + checkpoint + "." + probe + ".h5", record);
  }

  std::string refusal() const {
    try {
      read_small_runs(out());
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SmallRunFiles, SumsByHand) {
  add_run("0123456789ab");
  add_probe("0123456789ab", "preconditioned_curvature", "lambda", 20);
  add_probe("0123456789ab", "noise_scale", "b_simple_finite", 300);
  const SmallRuns found = read_small_runs(out());
  ASSERT_EQ(found.runs.size(), 1u);
  const SmallRun& run = found.runs[0];
  EXPECT_EQ(run.updates, 5);
  EXPECT_DOUBLE_EQ(run.effective, 4.5);
  EXPECT_DOUBLE_EQ(run.floor, 0.45 * 20 / 4);  // sum of rates x lambda over the frozen limit
  EXPECT_DOUBLE_EQ(run.noise_scale, 300);
  EXPECT_DOUBLE_EQ(run.probe_cost, 2 * 100 * (3 + 2.5 * 2));
}

// top_eigenvalues and others have a "lambda" too: of H, not of P^-1 H.
TEST_F(SmallRunFiles, TheCurvatureIsThePreconditionedOne) {
  add_run("0123456789ab");
  add_probe("0123456789ab", "preconditioned_curvature", "lambda", 20);
  add_probe("0123456789ab", "top_eigenvalues", "lambda", 5);
  EXPECT_DOUBLE_EQ(read_small_runs(out()).runs.at(0).floor, 0.45 * 20 / 4);
}

// A twin stands at the same update, has no optimiser, and its file comes later by name.
TEST_F(SmallRunFiles, TwinsAndAveragesAreNoPointsOfThePath) {
  add_run("0123456789ab");
  add_probe("0123456789ab", "preconditioned_curvature", "lambda", 20);
  add_probe("0123456789ab", "noise_scale", "b_simple_finite", 300);
  for (const char* other : {"end@twin", "average"}) {
    add_probe("0123456789ab", "preconditioned_curvature", "lambda", 70, other, NAN);
    add_probe("0123456789ab", "noise_scale", "b_simple_finite", 900, other);
  }
  const SmallRun run = read_small_runs(out()).runs.at(0);
  EXPECT_DOUBLE_EQ(run.floor, 0.45 * 20 / 4);
  EXPECT_DOUBLE_EQ(run.noise_scale, 300);
}

TEST_F(SmallRunFiles, ARunThatHasNotEndedHasMissedNothing) {
  add_run("0123456789ab");
  add_run("ba9876543210", "", RunState::interrupted);
  EXPECT_EQ(read_small_runs(out()).runs.size(), 1u);
  std::filesystem::remove_all(folder_of("0123456789ab"));
  EXPECT_THAT(refusal(), HasSubstr("none of its runs has ended"));
}

TEST_F(SmallRunFiles, OneForecastIsOfOneSetting) {
  add_run("0123456789ab");
  add_run("ba9876543210", "clip_gradient = 1.0\n");
  EXPECT_THAT(refusal(), HasSubstr("differ in clip_gradient (0.0 and 1.0)"));
}

TEST_F(SmallRunFiles, WhatDecidesNoUpdateMayDiffer) {
  add_run("0123456789ab");
  add_run("ba9876543210",
          "seed = 2\nmicro_batch = 32\nloss_levels = [1.0]\nmax_gradients = 1000\nschedule = \"cosine\"\n"
          "ledger_every = 5\noptimizer = \"lamb\"\n");
  EXPECT_EQ(read_small_runs(out()).runs.size(), 2u);
}

TEST_F(SmallRunFiles, AnOptimiserHasOneArm) {
  add_run("0123456789ab", "[sgd]\nmomentum = 0.9\n");
  add_run("ba9876543210", "[sgd]\nmomentum = 0.0\n");
  const SmallRuns found = read_small_runs(out());
  EXPECT_THROW(
      {
        try {
          evidence_for("sgd", found.runs, "OUT");
        } catch (const ConfigError& error) {
          EXPECT_STREQ(error.what(),
                       "OUT: runs differ in sgd.momentum (0.9 and 0.0): one forecast has one arm of each "
                       "optimiser");
          throw;
        }
      },
      ConfigError);
}

TEST_F(SmallRunFiles, AFullBatchIsNoSmallOne) {
  add_run("0123456789ab", "", RunState::finished, /*examples=*/256);
  EXPECT_THAT(refusal(), HasSubstr("256 training examples: batch sizes up to 256 have the full batch"));
}

}  // namespace
}  // namespace basin
