#include <gmock/gmock.h>

#include "core/files.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "io/run_file.h"
#include "tests/io/samples.h"
#include "tests/support/full_disk.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using testing::expect_io_error;
using testing::FileSizeLimit;
using testing::sample_run;
using testing::SmallDisk;
using testing::TemporaryFolder;

Checkpoint large_checkpoint() {
  Checkpoint checkpoint = testing::sample_checkpoint();
  checkpoint.parameters[0].tensor = at::rand({300, 1000});  // 1.2 MB of noise
  return checkpoint;
}

/// Writing `path` fails with a line that holds `reason`; the file that was there stays as it was and nothing is left over.
void expect_old_file_untouched(const std::string& path, const std::string& reason) {
  const std::string before = read_file(path);
  expect_io_error([&] { write_checkpoint(path, large_checkpoint()); }, {path, reason});
  EXPECT_EQ(read_file(path), before);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

void expect_journal_keeps_whole_frames(const std::string& path, const std::string& reason) {
  JournalWriter journal = JournalWriter::create(path, sample_run().header);
  const ExampleOutcomes many{std::vector<uint8_t>(100000), std::vector<float>(100000),
                             std::vector<float>(100000)};
  expect_io_error([&] { journal.append_outcomes("test", many); }, {path, "cannot write", reason});
  journal.append_event("info", "small enough");
  bool torn = true;
  EXPECT_EQ(replay_journal(path, &torn).events.size(), 1u);
  EXPECT_FALSE(torn);
}

TEST(FullDisk, FilesOnASmallTmpfs) {
  TemporaryFolder disk;
  const SmallDisk small(disk.path(), 128 << 10);
  if (!small.mounted())
    GTEST_SKIP() << "mounting a tmpfs is not permitted here; FullDisk.FileSizeLimit tests the same paths";
  write_checkpoint(disk / "end.h5", testing::sample_checkpoint());
  expect_old_file_untouched(disk / "end.h5", "No space left on device");
  expect_journal_keeps_whole_frames(disk / "journal", "No space left on device");
}

TEST(FullDisk, FileSizeLimit) {
  TemporaryFolder folder;
  write_checkpoint(folder / "end.h5", testing::sample_checkpoint());
  FileSizeLimit limit(128UL * 1024);
  expect_old_file_untouched(folder / "end.h5", "File too large");
  expect_journal_keeps_whole_frames(folder / "journal", "File too large");
}

TEST(FullDisk, AFolderThatIsNotThereOrNotAFolder) {
  TemporaryFolder folder;
  expect_io_error([&] { write_run_file(folder / "no/run.h5", sample_run()); }, {"no/run.h5", "No such file"});
  testing::write_bytes(folder / "file", "");
  expect_io_error([&] { write_run_file(folder / "file/run.h5", sample_run()); },
                  {"file/run.h5", "Not a directory"});
}

}  // namespace
}  // namespace basin
