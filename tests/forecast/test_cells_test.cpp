// Which studies have test runs that can be predicted, and what a cell of one is.
#include "forecast/test_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kHead =
    "protocol = \"B\"\nmax_gradients = 10000\nschedule = \"constant\"\nwarmup = 0.0\n"
    "[data]\nset = \"synthetic\"\ntrain_examples = 1000\n";

std::vector<TestCell> cells(const std::string& sweep) {
  return test_cells(parse_study(kHead + sweep, "test.toml", {}), 1000, "test.toml");
}

std::string refusal(const std::string& sweep) {
  try {
    cells(sweep);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TestCells, RatesAndSeedsOfASizeAreOneCell) {
  const std::vector<TestCell> found =
      cells("[sweep]\nbatch_size = [500, 1000]\nlearning_rate = [0.1, 0.2]\nseed = [1, 2]\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].rates, ElementsAre(0.1, 0.2));
  EXPECT_EQ(found[0].cap(), 20);  // 10,000 gradients of 500
  EXPECT_EQ(found[1].cap(), 10);
}

TEST(TestCells, TheFullBatchCountsOnce) {
  EXPECT_THAT(refusal("[sweep]\nbatch_size = [1000, 4000]\n"),
              HasSubstr("batch sizes 1000 and 4000 are one experiment with 1000 training examples"));
  EXPECT_EQ(cells("[sweep]\nbatch_size = [500, 4000]\n").size(), 2u);
  EXPECT_EQ(cells("[sweep]\nbatch_size = [1000]\noptimizer = [\"sgd\", \"lamb\"]\n").size(), 2u);
}

TEST(TestCells, TrialsDifferInRateAndSeedAlone) {
  EXPECT_THAT(refusal("[sweep]\nbatch_size = [500]\nsgd.momentum = [0.0, 0.9]\n"),
              HasSubstr("trials of one cell differ in sgd.momentum (0.0 and 0.9)"));
  EXPECT_THAT(refusal("[sweep]\nbatch_size = [500]\nmax_gradients = [5000, 10000]\n"),
              HasSubstr("differ in max_gradients"));
}

TEST(TestCells, ABranchHasOtherUpdates) {
  EXPECT_THAT(refusal("[branch]\nfrom = \"0123456789ab\"\nat = \"end\"\n[sweep]\nbatch_size = [500]\n"),
              HasSubstr("branch.from: updates are predicted from the beginning of a run"));
}

}  // namespace
}  // namespace basin
