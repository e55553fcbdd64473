#include "landscape/linear_assignment.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "tests/landscape/golden_assignment.h"
#include "tests/support/analytic_models.h"

namespace basin {
namespace {

double score_of(const at::Tensor& score, const std::vector<int64_t>& columns) {
  double sum = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    sum += score[static_cast<int64_t>(i)][columns[i]].item<double>();
  return sum;
}

double best_of_all(const at::Tensor& score) {
  std::vector<int64_t> columns(static_cast<size_t>(score.size(0)));
  std::iota(columns.begin(), columns.end(), 0);
  double best = score_of(score, columns);
  while (std::next_permutation(columns.begin(), columns.end()))
    best = std::max(best, score_of(score, columns));
  return best;
}

TEST(LinearAssignment, IsTheBestOfAllPermutations) {
  at::Generator generator = make_generator(3);
  for (int64_t n = 1; n <= 6; ++n) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      at::Tensor score = at::randn({n, n}, generator, at::kDouble);
      if (repetition % 2 == 1) score = score.round();  // many ties
      const std::vector<int64_t> columns = best_assignment(score);
      EXPECT_EQ(std::set<int64_t>(columns.begin(), columns.end()).size(), static_cast<size_t>(n));
      // Sums of six numbers of order 1 in another order.
      EXPECT_NEAR(score_of(score, columns), best_of_all(score), 1e-14) << score;
    }
  }
}

TEST(LinearAssignment, IsScipys) {
  const at::Tensor score = testing::sine_numbers({20, 20});
  const std::vector<int64_t> columns = best_assignment(score);
  EXPECT_EQ(columns, std::vector<int64_t>(std::begin(golden::kAssignment), std::end(golden::kAssignment)));
  EXPECT_NEAR(score_of(score, columns), golden::kAssignmentScore, 1e-14);  // the same sum of 20 numbers
}

TEST(LinearAssignment, DoesNotHangOnScaleOrOnAShiftOfARow) {
  const at::Tensor score = testing::sine_numbers({20, 20});
  const std::vector<int64_t> columns = best_assignment(score);
  EXPECT_EQ(best_assignment(score * 1e8), columns);
  EXPECT_EQ(best_assignment(score + 5 * testing::sine_numbers({20, 1}, 1000)), columns);
}

TEST(LinearAssignment, RefusesWhatIsNotFinite) {
  at::Tensor score = at::zeros({3, 3}, at::kDouble);
  score[1][2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(best_assignment(score), NumericError);
}

}  // namespace
}  // namespace basin
