// `basin init`: a study to start from.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/files.h"
#include "tests/support/environment.h"
#include "tests/support/run_binary.h"
#include "tests/support/temporary_folder.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

TEST(InitCommand, WritesAStudyOfTheRepositoryThatASweepTakes) {
  const TemporaryFolder folder;
  const BinaryResult done = run_binary({"init", folder / "mine.toml", "--from", "tiny"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("basin sweep " + (folder / "mine.toml") + " --dry-run"));
  EXPECT_EQ(read_file(folder / "mine.toml"), read_file(source_folder() + "/configs/tiny.toml"));
  EXPECT_EQ(run_binary({"sweep", folder / "mine.toml", "--out", folder / "out", "--dry-run"}).exit_code, 0);
}

TEST(InitCommand, LeavesAFileAloneAndNamesTheStudiesThatThereAre) {
  const TemporaryFolder folder;
  write_file(folder / "mine.toml", "mine");
  const BinaryResult there = run_binary({"init", folder / "mine.toml"});
  EXPECT_EQ(there.exit_code, 2);
  EXPECT_THAT(there.err, HasSubstr("mine.toml: exists already"));
  EXPECT_EQ(read_file(folder / "mine.toml"), "mine");
  const BinaryResult typo = run_binary({"init", folder / "new.toml", "--from", "quik"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.err, HasSubstr("unknown study \"quik\"; did you mean \"quick\"? known: "));
  EXPECT_FALSE(std::filesystem::exists(folder / "new.toml"));
}

}  // namespace
}  // namespace basin::testing
