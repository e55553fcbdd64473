// `basin scaling`: what it writes for a sweep's folder, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/schema.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

TEST(ScalingCommand, WritesWhatItMeasured) {
  const TinyStudy study({"batch_size = 64"});
  const std::string folder = std::filesystem::path(study.study()).parent_path();
  const BinaryResult done =
      run_binary({"scaling", folder, "--ranks", "2", "--rounds", "1", "--seconds", "0.01"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("sgd, strong"));
  EXPECT_THAT(done.out, HasSubstr("Hessian products"));
  const h5::File file = open_schema_file(folder + "/scaling.h5", kScalingSchema);
  EXPECT_EQ(file.dataset("updates/ranks").read<int64_t>(), (std::vector<int64_t>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(file.attribute_as<std::vector<std::string>>("hosts").size(), 2);
  EXPECT_THAT(file.attribute_as<std::string>("study"), HasSubstr("batch_size = 64"));
  EXPECT_TRUE(file.group("provenance").has_attribute("git_commit"));
  EXPECT_EQ(run_binary({"inspect", folder + "/scaling.h5"}).exit_code, 0);
}

TEST(ScalingCommand, RefusalsAreOneLine) {
  const TinyStudy study({"batch_size = 2"});
  const std::string folder = std::filesystem::path(study.study()).parent_path();
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"scaling", folder};
    words.insert(words.end(), more.begin(), more.end());
    const BinaryResult result = run_binary(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(refusal({}), HasSubstr("one rank has nothing to compare with"));
  EXPECT_THAT(refusal({"--ranks", "3"}), HasSubstr("a batch of 2 can be shared by 2 ranks, not by 3"));
  EXPECT_THAT(refusal({"--ranks", "2", "--cell", "9"}), HasSubstr("--cell 9: the study has 1 run"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/scaling.h5"));
  const BinaryResult nothing = run_binary({"scaling", study.path("nowhere"), "--ranks", "2"});
  EXPECT_EQ(nothing.exit_code, 4);
  EXPECT_THAT(nothing.err, HasSubstr("no folder of a sweep"));
}

}  // namespace
}  // namespace basin::testing
