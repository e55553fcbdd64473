// Ctrl-C on commands that are at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "io/probe_file.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;

TEST(InterruptCommand, CtrlCEndsAProbeAtItsNextPass) {
  const TinyStudy study;
  ASSERT_EQ(study.train().exit_code, 0);
  const std::string run = study.run_folder();
  // The first probe takes a moment, the second a minute.
  RunningBinary process({"probe", run, "--only", "noise_scale,sharpness_keskar", "--set", "runtime.threads=1",
                         "--set", "sharpness_keskar.iterations=10000", "--set", "sharpness_keskar.draws=1000",
                         "--set", "sharpness_keskar.spaces=[\"subspace\"]"});
  const std::string first = run + "/probes/end.noise_scale.h5";
  while (process.alive() && !fs::exists(first)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(process.alive()) << process.wait().err;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto start = std::chrono::steady_clock::now();
  process.send(SIGINT);
  const BinaryResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(10));  // a pass of a tiny net takes far less
  EXPECT_EQ(read_probe_file(first).status, ProbeStatus::ok);
  for (const auto& entry : fs::directory_iterator(run + "/probes")) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(::testing::HasSubstr("sharpness_keskar")));
  }
}

}  // namespace
}  // namespace basin::testing
