// `basin sweep --ranks`: each run of a sweep on several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "io/probe_file.h"
#include "io/run_file.h"
#include "tests/apps/tiny_sweep.h"
#include "tests/support/environment.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

double eigenvalue_of(const std::string& run) {
  const ProbeRecord record = read_probe_file(run + "/probes/end.top_eigenvalues.h5");
  return record.quantities.front().value.front();
}

// Whatever step of a launcher the sweep itself is: its workers are its own.
TEST(SweepRanks, GiveTheSweepOfOne) {
  const TinySweep sweep("[sweep]\nbatch_size = [1, 30]\n", "dtype = 'float64'\n");
  ASSERT_EQ(sweep.run({"--set", "probes.dtype=float64"}).exit_code, 0);
  const Variables step({{"SLURM_PROCID", "1"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_JOB_ID", "7"},
                        {"SLURM_STEP_NODELIST", "nowhere[1-4]"}});
  const BinaryResult shared =
      sweep.run({"--ranks", "2", "--jobs", "1", "--set", "probes.dtype=float64"}, "shared");
  ASSERT_EQ(shared.exit_code, 0) << shared.err;
  EXPECT_THAT(shared.err, HasSubstr("1 worker of 2 ranks of 1 thread"));
  const std::vector<std::string> whole = sweep.runs(), parts = sweep.runs("shared/runs");
  ASSERT_EQ(parts.size(), 2u);
  for (size_t i = 0; i < parts.size(); ++i) {
    const RunRecord one = read_run_file(whole[i] + "/run.h5"), two = read_run_file(parts[i] + "/run.h5");
    EXPECT_EQ(one.header.run_id, two.header.run_id);
    const bool is_single = one.header.config.find("batch_size = 1\n") != std::string::npos;
    EXPECT_EQ(provenance_of(two, "ranks"), is_single ? "" : "2");  // one example can't be shared
    const std::vector<double> a = one.tables.at("train").column("loss"),
                              b = two.tables.at("train").column("loss");
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-10 * a[k]);  // float64 in another order
    EXPECT_NEAR(eigenvalue_of(whole[i]), eigenvalue_of(parts[i]), 1e-6 * std::abs(eigenvalue_of(whole[i])));
    EXPECT_TRUE(std::filesystem::exists(parts[i] + "/probes/done"));
  }
}

TEST(SweepRanks, NoneIsRefused) {
  const TinySweep sweep(kTwoByTwo);
  EXPECT_EQ(sweep.run({"--ranks", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace basin::testing
