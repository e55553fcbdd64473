// `basin data` as a user types it.
#include <gmock/gmock.h>

#include "tests/support/environment.h"
#include "tests/support/run_binary.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_files.h"

namespace basin::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

size_t lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(DataCommand, DescribesTheEmbeddedSet) {
  const BinaryResult answer = run_binary({"data", "describe", "cifar10-5k", "--validation", "0.1"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out,
              AllOf(HasSubstr("4529 images of 3x32x32"), HasSubstr("471 images"), HasSubstr("1000 images"),
                    HasSubstr("0.492774"), HasSubstr("official"), HasSubstr("airplane"),
                    HasSubstr("25286861667ac9a737c4eecbda33e17b7ba3bb19869556b4428311774c4b496b")));
}

TEST(DataCommand, ChecksTheEmbeddedSet) {
  const BinaryResult answer = run_binary({"data", "check", "cifar10-5k"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("5000 train and 1000 test images, pixels official"));
}

TEST(DataCommand, TellsBadDataInOneLineWithItsExitCode) {
  const TemporaryFolder folder;
  const BinaryResult missing = run_binary({"data", "check", "cifar10", "--path", folder / "nowhere"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("missing data"));
  EXPECT_EQ(lines(missing.err), 1u);

  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin"})
    spill(folder / name, std::string(3072, '\0'));
  const BinaryResult truncated = run_binary({"data", "describe", "cifar10", "--path", folder.path()});
  EXPECT_EQ(truncated.exit_code, 3);
  EXPECT_THAT(truncated.err, HasSubstr("data_batch_1.bin: 3072 bytes are not whole records"));
  EXPECT_EQ(lines(truncated.err), 1u);

  const BinaryResult import =
      run_binary({"data", "import", "cifar10", "--path", folder.path(), "--out", folder / "out"});
  EXPECT_EQ(import.exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

// An idx file of zeros, packed: `sizes` are its dimensions.
std::string packed_zeros(const std::vector<int>& sizes) {
  std::string bytes = {0, 0, 8, static_cast<char>(sizes.size())};
  size_t count = 1;
  for (const int size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xFF);
    count *= static_cast<size_t>(size);
  }
  return gzipped(bytes + std::string(count, '\0'));
}

TEST(DataCommand, ImportSaysWhereItCannotVouchForThePixels) {
  const TemporaryFolder folder;
  write_files(folder / "in", {{"train-images-idx3-ubyte.gz", packed_zeros({60000, 28, 28})},
                              {"train-labels-idx1-ubyte.gz", packed_zeros({60000})},
                              {"t10k-images-idx3-ubyte.gz", packed_zeros({10000, 28, 28})},
                              {"t10k-labels-idx1-ubyte.gz", packed_zeros({10000})}});
  const BinaryResult answer =
      run_binary({"data", "import", "fashion_mnist", "--path", folder / "in", "--out", folder / "out"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.err, AllOf(HasSubstr("warning: the pixels of "), HasSubstr("unverified")));
  EXPECT_EQ(lines(answer.err), 1u);
}

TEST(DataCommand, NeedsAPathWhereTheSetDoes) {
  const BinaryResult answer = run_binary({"data", "describe", "cifar100"});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_THAT(answer.err, HasSubstr("data.path"));
}

TEST(DataCommand, RefusesAnUnknownSet) {
  EXPECT_EQ(run_binary({"data", "describe", "imagenet"}).exit_code, 2);
}

TEST(DataCommand, GetEndsWithOneClearLineWhereNothingCanBeFetched) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "bin");
  spill(folder / "bin/curl", "#!/bin/sh\nexit 6\n");
  std::filesystem::permissions(folder / "bin/curl", std::filesystem::perms::owner_all);
  const std::string path = environment("PATH");
  ::setenv("PATH", ((folder / "bin") + ":" + path).c_str(), 1);
  const BinaryResult answer = run_binary({"data", "get", "cifar10", "--out", folder / "cifar10"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_THAT(
      answer.err,
      AllOf(::testing::StartsWith("fetching https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz\n"),
            HasSubstr("network")));
  EXPECT_EQ(lines(answer.err), 2u);
  size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++left;
  EXPECT_EQ(left, 1u);  // bin
}

}  // namespace
}  // namespace basin::testing
