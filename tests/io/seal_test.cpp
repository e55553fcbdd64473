// The seal of HDF5 files: damage is one line, whatever libhdf5 would have made of it.
#include "io/seal.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <unistd.h>

#include <csignal>

#include "core/error.h"
#include "core/files.h"
#include "io/checkpoint.h"
#include "io/damaged.h"
#include "io/in_child.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "io/unsealed.h"
#include "tests/io/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin {
namespace {

using testing::expect_io_error;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::without_seal;
using testing::write_bytes;

std::string sample_bytes(const TemporaryFolder& folder) {
  write_checkpoint(folder / "end.h5", testing::sample_checkpoint());
  return read_file(folder / "end.h5");
}

// The layout itself is read by other code in check_with_h5py.py.
TEST(Seal, SaysWhatTheFileIs) {
  const TemporaryFolder folder;
  sample_bytes(folder);
  const std::optional<Seal> seal = check_seal(folder / "end.h5");
  ASSERT_TRUE(seal);
  EXPECT_EQ(seal->kind, kCheckpointSchema);
  EXPECT_EQ(seal->label, testing::sample_checkpoint().label);
  EXPECT_EQ(seal->update, testing::sample_checkpoint().update);
  EXPECT_EQ(seal_block(*seal, without_seal(read_file(folder / "end.h5"))),
            read_file(folder / "end.h5").substr(0, kSealBytes));
}

TEST(Seal, NoByteCanChangeUnseen) {
  const TemporaryFolder folder;
  const std::string bytes = sample_bytes(folder);
  const std::string path = folder / "flipped.h5";
  // Each byte of the block and of what says where HDF5's part begins; of the rest every 31st, since each is a file.
  for (size_t at = 0; at < bytes.size(); at += at < 600 ? 1 : 31) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    write_bytes(path, flipped);
    ASSERT_THROW(h5::File::open(path), DamagedError) << "byte " << at;
  }
}

TEST(Seal, NorCanTheFileBeCutOrGrow) {
  const TemporaryFolder folder;
  const std::string bytes = sample_bytes(folder);
  const std::string path = folder / "cut.h5";
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{511}, size_t{512}, size_t{519},
                            size_t{520}, bytes.size() - 1}) {
    write_bytes(path, bytes.substr(0, size));
    ASSERT_THROW(h5::File::open(path), DamagedError) << size << " bytes";
  }
  write_bytes(path, bytes + '\0');
  expect_io_error([&] { h5::File::open(path); }, {"cut.h5", "damaged"});
  write_bytes(path, bytes.substr(0, bytes.size() - 1));
  expect_io_error([&] { h5::File::open(path); }, {"cut.h5", "truncated", std::to_string(bytes.size())});
}

TEST(Seal, AFileWhoseSealIsGoneIsNotTakenForAnOldOne) {
  const TemporaryFolder folder;
  std::string bytes = sample_bytes(folder);
  bytes.replace(0, kSealBytes, kSealBytes, '\0');
  write_bytes(folder / "end.h5", bytes);
  expect_io_error([&] { h5::File::open(folder / "end.h5"); }, {"end.h5", "no seal"});
}

TEST(Seal, AnOldFileOpensAndCanBeSealed) {
  const TemporaryFolder folder;
  const std::string bytes = sample_bytes(folder), path = folder / "old.h5";
  write_bytes(path, without_seal(bytes));
  EXPECT_FALSE(check_seal(path));
  EXPECT_EQ(read_checkpoint(path).update, testing::sample_checkpoint().update);
  EXPECT_EQ(reseal(path).label, testing::sample_checkpoint().label);
  EXPECT_EQ(read_file(path), bytes) << "as if it had been written today";
}

TEST(Seal, AnEditedFileIsRefusedUntilItIsSealedAgain) {
  const TemporaryFolder folder;
  sample_bytes(folder);
  const std::string path = folder / "end.h5";
  h5::File::open_unchecked(path, true).set_attribute("label", std::string("edited"));
  expect_io_error([&] { read_checkpoint(path); }, {"end.h5", "edited since", "basin seal"});
  EXPECT_EQ(reseal(path).label, "edited");
  EXPECT_EQ(read_checkpoint(path).label, "edited");
}

TEST(Seal, WhatCannotBeReadIsNotSealed) {
  const TemporaryFolder folder;
  const std::string bytes = sample_bytes(folder), path = folder / "end.h5";
  std::string damaged = bytes;
  std::fill(damaged.begin() + 600, damaged.begin() + 1400, '\x7f');
  write_bytes(path, damaged);
  EXPECT_THROW(reseal(path), IoError);
  EXPECT_EQ(read_file(path), damaged) << "the file stays as it was";
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  write_bytes(path, "text");
  EXPECT_THROW(reseal(path), DamagedError);
  h5::File foreign = h5::File::create(path);
  foreign.write("x", std::vector<double>{1});
  write_bytes(path, without_seal(foreign.image()));
  expect_io_error([&] { reseal(path); }, {"end.h5", "not a Basin file"});
}

/// A group whose links lead back to one that it lies in has no end: it was read until the time ran out.
TEST(Seal, ALinkInACircleIsDamage) {
  const TemporaryFolder folder;
  const std::string path = folder / "old.h5";
  for (const bool hard : {true, false}) {
    write_bytes(path, without_seal(sample_bytes(folder)));
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0);
    ASSERT_GE(hard ? H5Lcreate_hard(file, "/", file, "/progress/odd", H5P_DEFAULT, H5P_DEFAULT)
                   : H5Lcreate_soft(".", file, "/progress/odd", H5P_DEFAULT, H5P_DEFAULT),
              0);
    ASSERT_GE(H5Fclose(file), 0);
    expect_io_error([&] { reseal(path); },
                    {"old.h5", "/progress/odd", hard ? "leads back to /" : "leads back to /progress"});
    EXPECT_THROW(survey(path), DamagedError);
  }
}

TEST(Seal, AListOfCheckpointsLooksAtNoMoreThanTheSeal) {
  const TemporaryFolder folder;
  std::string bytes = sample_bytes(folder);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(folder / "end.h5", bytes);
  EXPECT_EQ(read_checkpoint_update(folder / "end.h5"), testing::sample_checkpoint().update);
  EXPECT_THROW(read_checkpoint(folder / "end.h5"), DamagedError);
  write_run_file(folder / "run.h5", testing::sample_run());
  expect_io_error([&] { read_checkpoint_update(folder / "run.h5"); },
                  {"run.h5", "not a basin/checkpoint file"});
}

// ---- what may crash

TEST(InChild, ACrashAHangAndAnErrorAreDamageInOneLine) {
  EXPECT_EQ(in_child("f.h5", 10, [] { return std::string(100000, 'x'); }), std::string(100000, 'x'));
  expect_io_error(
      [] {
        in_child("f.h5", 10, []() -> std::string {
          std::raise(SIGKILL);
          return "";
        });
      },
      {"f.h5", "damaged", "crashes"});
  expect_io_error(
      [] {
        in_child("f.h5", 1, []() -> std::string {
          while (true) ::pause();
        });
      },
      {"f.h5", "damaged", "not read within 1 s"});
  expect_io_error([] { in_child("f.h5", 10, []() -> std::string { ::_exit(1); }); },
                  {"f.h5: the process that was reading it stopped (1)"});
  expect_io_error([] { in_child("f.h5", 10, []() -> std::string { throw DamagedError("f.h5: cut"); }); },
                  {"f.h5: cut"});
  EXPECT_THROW(in_child("f.h5", 10, []() -> std::string { throw DamagedError("f.h5: cut"); }), DamagedError);
  EXPECT_THROW(in_child("f.h5", 10, []() -> std::string { throw IoError("f.h5: foreign"); }), IoError);
}

TEST(InChild, ItsLastWordsArentOurs) {
  ::testing::internal::CaptureStderr();
  in_child("f.h5", 10, [] {
    std::fputs("malloc(): corrupted", stderr);
    return std::string();
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace basin
