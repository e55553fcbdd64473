// A disk that fills up under `basin train` and `basin sweep`: one line that names the file, exit code 4, and
// once there is room again the same numbers as on a disk that had it all along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/apps/stored_numbers.h"
#include "tests/apps/tiny_sweep.h"
#include "tests/support/full_disk.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kRoom = 256 << 20;

uintmax_t largest(const std::string& folder, const std::string& name) {
  uintmax_t size = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(name)) size = std::max(size, entry.file_size());
  }
  return size;
}

// What the folder takes on a tmpfs, in whole pages.
size_t pages(const std::string& folder) {
  size_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += (entry.file_size() + 4095) / 4096 * 4096;
  }
  return bytes;
}

// A limit that every checkpoint stays below and a journal goes beyond, so that a run fails half-way.
rlim_t between_checkpoint_and_journal(const std::string& folder) {
  const uintmax_t checkpoint = largest(folder, "latest.h5"), journal = largest(folder, "journal");
  EXPECT_GT(journal, 3 * checkpoint / 2);
  return (checkpoint + journal) / 2;
}

// The last line on stderr is main's, and names a file under `folder`.
void expect_full(const BinaryResult& result, const std::string& folder, const std::string& reason) {
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const size_t last = result.err.rfind('\n', result.err.size() - 2);
  const std::string line = last == std::string::npos ? result.err : result.err.substr(last + 1);
  EXPECT_EQ(line.rfind("basin: ", 0), 0u) << result.err;
  EXPECT_THAT(line, HasSubstr(folder + "/"));
  EXPECT_THAT(line, HasSubstr(reason));
}

// `basin train` of a run whose journal outgrows its checkpoints.
class FullDiskTrain : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(train(undisturbed_).exit_code, 0); }
  static BinaryResult train(const TinyStudy& study) { return study.train({"--set", "mlp.hidden=[2]"}); }
  static std::vector<std::string> lines() { return {"updates = 2500", "checkpoint_seconds = 0.05"}; }
  void expect_fails_in_one_line(const std::string& reason) const {
    const BinaryResult result = train(disturbed_);
    expect_full(result, disturbed_.path("out"), reason);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  void expect_goes_on_to_the_same_numbers() const {
    const BinaryResult result = train(disturbed_);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(differences(stored_numbers(disturbed_.path("out")), stored_numbers(undisturbed_.path("out"))),
                IsEmpty());
  }
  TinyStudy undisturbed_{lines()}, disturbed_{lines()};
};

TEST_F(FullDiskTrain, FileSizeLimit) {
  {
    const FileSizeLimit limit(between_checkpoint_and_journal(undisturbed_.path("out")));
    expect_fails_in_one_line("File too large");
  }
  expect_goes_on_to_the_same_numbers();
}

using SlowFullDiskTrain =
    FullDiskTrain;  // where a tmpfs can be mounted; the file size limit is the same in less time
TEST_F(SlowFullDiskTrain, SmallTmpfs) {
  fs::create_directories(disturbed_.path("out"));
  SmallDisk disk(disturbed_.path("out"), pages(undisturbed_.path("out")) * 6 / 10);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here; FileSizeLimit tests the same";
  expect_fails_in_one_line("No space left on device");
  ASSERT_TRUE(disk.resize(kRoom));
  expect_goes_on_to_the_same_numbers();
}

class FullDiskSweep : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(sweep_.run({}, "out-a").exit_code, 0); }
  void expect_goes_on_to_the_same_numbers() const {
    const BinaryResult result = sweep_.run({"--retry", "failed"}, "out-b");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(differences(stored_numbers(sweep_.path("out-b")), stored_numbers(sweep_.path("out-a"))),
                IsEmpty());
  }
  const TinySweep sweep_{
      "[sweep]\nseed = [1, 2]\n[[sweep.set]]\nset = { updates = 2500, mlp.hidden = [2] }\n"};
};

TEST_F(FullDiskSweep, FileSizeLimit) {
  {
    const FileSizeLimit limit(between_checkpoint_and_journal(sweep_.path("out-a")));
    expect_full(sweep_.run({}, "out-b"), sweep_.path("out-b"), "File too large");
  }
  expect_goes_on_to_the_same_numbers();
}

using SlowFullDiskSweep = FullDiskSweep;
TEST_F(SlowFullDiskSweep, SmallTmpfs) {
  fs::create_directories(sweep_.path("out-b"));
  SmallDisk disk(sweep_.path("out-b"), pages(sweep_.path("out-a")) * 6 / 10);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here; FileSizeLimit tests the same";
  expect_full(sweep_.run({}, "out-b"), sweep_.path("out-b"), "");
  ASSERT_TRUE(disk.resize(kRoom));
  expect_goes_on_to_the_same_numbers();
}

}  // namespace
}  // namespace basin::testing
