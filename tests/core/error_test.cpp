// What is said of exceptions that aren't ours.
#include "core/error.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

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

TEST(OneLine, EndsWithTheFirst) { EXPECT_EQ(one_line(std::runtime_error("one\ntwo")), "one"); }

}  // namespace
}  // namespace basin
