#include "data/import.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/hash.h"
#include "data/readers.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_files.h"

namespace basin::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Import, TurnsAnArchiveIntoAFolderThatReadsTheSame) {
  const TemporaryFolder folder;
  write_archive(folder / "set.tar.gz", "tiny-bin", tiny_cifar_files());
  const Imported imported = import_dataset(tiny_cifar(), folder / "set.tar.gz", folder / "out/");
  EXPECT_EQ(imported.files, 3);
  EXPECT_EQ(imported.sha256, read_set(tiny_cifar(), folder / "set.tar.gz").sha256);
  EXPECT_THAT(names_in(folder / "out"), ::testing::ElementsAre("a.bin", "b.bin", "names.txt", "t.bin"));
  const Files files = tiny_cifar_files();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(slurp(folder / ("out/" + files[i].first)), files[i].second);
  EXPECT_EQ(read_set(tiny_cifar(), folder / "out").sha256, imported.sha256);
}

TEST(Import, KeepsIdxFilesAsTheyAre) {
  const TemporaryFolder folder;
  write_files(folder / "in", tiny_idx_files(true));
  import_dataset(tiny_idx(), folder / "in", folder / "out");
  for (const auto& [name, bytes] : tiny_idx_files(true)) EXPECT_EQ(slurp(folder / ("out/" + name)), bytes);
}

TEST(Import, LeavesNothingBehindWhenTheSourceIsBad) {
  const TemporaryFolder folder;
  Files files = tiny_cifar_files();
  files[0].second.pop_back();
  write_files(folder / "in", files);
  EXPECT_THAT(data_error([&] { import_dataset(tiny_cifar(), folder / "in", folder / "out"); }),
              HasSubstr("a.bin"));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("in"));
}

TEST(Import, DoesNotTouchAnExistingFolder) {
  const TemporaryFolder folder;
  write_files(folder / "in", tiny_cifar_files());
  write_files(folder / "out", {{"mine.txt", "precious"}});
  EXPECT_THROW(import_dataset(tiny_cifar(), folder / "in", folder / "out"), IoError);
  EXPECT_THAT(names_in(folder / "out"), ::testing::ElementsAre("mine.txt"));
}

/// PATH holds one folder with the scripts that a test puts there; restored at the end.
class Fetch : public ::testing::Test {
 protected:
  Fetch() : path_(environment("PATH")) {
    std::filesystem::create_directories(folder_ / "bin");
    ::setenv("PATH", (folder_ / "bin").c_str(), 1);
  }
  ~Fetch() override { ::setenv("PATH", path_.c_str(), 1); }
  void install(const std::string& name, const std::string& script) {
    spill(folder_ / ("bin/" + name), "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / ("bin/" + name), std::filesystem::perms::owner_all);
  }
  std::string failure() {
    return data_error(
        [&] { fetch_archive("https://example.org/x.tar.gz", sha256_hex("right"), folder_ / "x"); });
  }
  TemporaryFolder folder_;
  std::string path_;
};

// `$2` after the shifts is the output path, which curl takes after --output and wget after -O.
const char* const kCurl = "while [ \"$1\" != --output ]; do shift; done; printf %s ";
const char* const kWget = "while [ \"$1\" != -O ]; do shift; done; printf %s ";

TEST_F(Fetch, TakesWhatCurlBringsWhenItsHashIsRight) {
  install("curl", std::string(kCurl) + "right > \"$2\"");
  fetch_archive("https://example.org/x.tar.gz", sha256_hex("right"), folder_ / "x");
  EXPECT_EQ(slurp(folder_ / "x"), "right");
}

TEST_F(Fetch, FallsBackToWget) {
  install("wget", std::string(kWget) + "right > \"$2\"");
  fetch_archive("https://example.org/x.tar.gz", sha256_hex("right"), folder_ / "x");
  EXPECT_EQ(slurp(folder_ / "x"), "right");
}

TEST_F(Fetch, RejectsOtherContentsAndRemovesThem) {
  install("curl", std::string(kCurl) + "wrong > \"$2\"");
  EXPECT_THAT(failure(), AllOf(HasSubstr(sha256_hex("wrong")), HasSubstr(sha256_hex("right"))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(Fetch, TellsInOneLineWhatWentWrong) {
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("https://example.org/x.tar.gz"), HasSubstr("neither curl nor wget")));
  install("curl", "exit 6");
  EXPECT_THAT(failure(), AllOf(HasSubstr("network"), Not(HasSubstr("\n"))));
  install("curl", "exit 22");
  EXPECT_THAT(failure(), HasSubstr("server"));
  install("curl", "exit 0");
  EXPECT_THAT(failure(), HasSubstr("nothing was downloaded"));
}

}  // namespace
}  // namespace basin::testing
