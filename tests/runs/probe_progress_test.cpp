// Where the probing of a run stands: counted, expected, written for other processes.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "core/files.h"
#include "probes/registry.h"
#include "runs/probe_progress.h"
#include "study/study.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

TEST(ProbeStep, SaysWhichOfHowManyAndHowLong) {
  EXPECT_EQ(to_text(ProbeStep{3, 12, "end", "top_eigenvalues", 40}),
            "3/12: end top_eigenvalues, about 40 s left");
  EXPECT_EQ(to_text(ProbeStep{1, 12, "end", "top_eigenvalues"}), "1/12: end top_eigenvalues");
}

TEST(ProbeCountdown, ExpectsTheRestToTakeWhatWasMeasuredTook) {
  const RunOptions options =
      expand(parse_study("[probes]\nrun = ['noise_scale', 'weight_norms']\n", "s.toml", {})).at(0).options;
  ProbeCountdown countdown(options.probes, options.probe_options, 2);
  EXPECT_TRUE(std::isnan(countdown.begin("start", "noise_scale").seconds_left));
  countdown.end(/*measured=*/false);  // was there already: tells nothing
  const ProbeStep second = countdown.begin("start", "weight_norms");
  EXPECT_EQ(second.number, 2);
  EXPECT_EQ(second.total, 4);
  EXPECT_TRUE(std::isnan(second.seconds_left));
  countdown.end(false);
  countdown.begin("end", "noise_scale");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  countdown.end(true);
  const ProbeStep last = countdown.begin("end", "weight_norms");
  const auto cost = [&](const std::string& probe) {
    const ProbeCost c =
        find_entry(probe_registry(), probe, "probe").make(options.probe_options.at(probe))->expected_cost();
    return c.gradients + 2.5 * c.hvps;
  };
  // One of the two was measured, in 0.2 s or, on a loaded machine, more.
  const double ratio = cost("weight_norms") / cost("noise_scale");
  EXPECT_GE(last.seconds_left, 0.2 * ratio);
  EXPECT_LT(last.seconds_left, 20 * ratio + 1e-9);
}

TEST(ProbeCountdown, TakesAProbesOwnTimeWhereItHasOne) {
  const RunOptions options =
      expand(parse_study("[probes]\nrun = ['noise_scale', 'weight_norms']\n", "s.toml", {})).at(0).options;
  ProbeCountdown countdown(options.probes, options.probe_options, 2);
  for (const char* probe : {"noise_scale", "weight_norms"}) {
    countdown.begin("start", probe);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    countdown.end(true);
  }
  const double left = countdown.begin("end", "noise_scale").seconds_left;  // a tenth of a second each
  EXPECT_GE(left, 0.2);
  EXPECT_LT(left, 10);
}

TEST(ProbeProgress, IsReadBackAndGone) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "probes");
  EXPECT_FALSE(read_probe_progress(folder.path()));
  write_probe_progress(folder.path(), {3, 12, "end", "top_eigenvalues", 40});
  EXPECT_EQ(to_text(*read_probe_progress(folder.path())), "3/12: end top_eigenvalues, about 40 s left");
  write_probe_progress(folder.path(), {4, 12, "end", "margins"});
  EXPECT_EQ(to_text(*read_probe_progress(folder.path())), "4/12: end margins");
  write_file_atomically(folder / "probes/progress", "4 12\n");
  EXPECT_FALSE(read_probe_progress(folder.path()));
  remove_probe_progress(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "probes"));
}

}  // namespace
}  // namespace basin
