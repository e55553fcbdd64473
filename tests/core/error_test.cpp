// What is said of exceptions that aren't ours.
#include "core/error.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

#include <filesystem>

namespace basin {
namespace {

TEST(OneLine, OfTorchHasNeitherItsStackNorItsSource) {
  std::string line;
  try {
    at::empty({int64_t{1} << 55});
  } catch (const std::exception& error) {
    line = one_line(error);
  }
  EXPECT_THAT(line,
              ::testing::StartsWith("can't allocate memory: you tried to allocate 144115188075855872 bytes"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(OneLine, OfBadAllocSaysWhatIsShort) { EXPECT_EQ(one_line(std::bad_alloc()), "out of memory"); }

TEST(OneLine, OfAFileBeginsWithIt) {
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  EXPECT_EQ(one_line(std::filesystem::filesystem_error("cannot look", "a/folder", full)),
            "a/folder: No space left on device");
  EXPECT_THAT(one_line(std::filesystem::filesystem_error("cannot look", full)),
              ::testing::HasSubstr("cannot look"));
}

TEST(OneLine, EndsWithTheFirst) { EXPECT_EQ(one_line(std::runtime_error("one\ntwo")), "one"); }

}  // namespace
}  // namespace basin
