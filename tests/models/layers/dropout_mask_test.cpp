// Masks as functions of their place, and as draws: rates, and independence of neighbours along every coordinate.
#include "models/layers/dropout_mask.h"

#include <gtest/gtest.h>

#include "core/seed.h"

namespace basin {
namespace {

constexpr uint64_t kKey = 0x0123456789abcdef;

TEST(DropoutMask, DoesNotDependOnHowABatchIsCut) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7}, {3, 2, 2}}) {
    std::vector<int64_t> sizes{100};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    const at::Tensor whole = dropout_mask(sizes, 0.5, kKey, {3, 0});
    for (const int64_t cut : {1, 16, 33}) {
      std::vector<at::Tensor> parts;
      for (int64_t first = 0; first < 100; first += cut) {
        sizes[0] = std::min(cut, 100 - first);
        parts.insert(parts.begin(), dropout_mask(sizes, 0.5, kKey, {3, first}));  // last drawn first
      }
      std::reverse(parts.begin(), parts.end());
      EXPECT_TRUE(at::equal(at::cat(parts), whole)) << cut;
    }
  }
}

// 300 x 1,000 elements are shared among threads, a row's are not.
TEST(DropoutMask, DoesNotDependOnThreads) {
  const at::Tensor whole = dropout_mask({300, 1000}, 0.3, kKey, {1, 5});
  for (const int64_t i : {0, 151, 299}) {
    EXPECT_TRUE(at::equal(dropout_mask({1, 1000}, 0.3, kKey, {1, 5 + i})[0], whole[i]));
  }
}

// From one coordinate to the next half of the elements change; 5 standard deviations of 4,000 coins: 1 in 1.7 million.
TEST(DropoutMask, DiffersBetweenUpdatesPositionsAndKeys) {
  const at::Tensor mask = dropout_mask({1, 4000}, 0.5, kKey, {7, 9});
  const int64_t far = int64_t{1} << 32;  // another word of the counter
  for (const at::Tensor& other :
       {dropout_mask({1, 4000}, 0.5, kKey, {8, 9}), dropout_mask({1, 4000}, 0.5, kKey, {7 + far, 9}),
        dropout_mask({1, 4000}, 0.5, kKey, {7, 10}), dropout_mask({1, 4000}, 0.5, kKey, {9, 7}),
        dropout_mask({1, 4000}, 0.5, kKey + 1, {7, 9}),
        dropout_mask({1, 4000}, 0.5, kKey + static_cast<uint64_t>(far), {7, 9})}) {
    EXPECT_NEAR(other.ne(mask).to(at::kDouble).mean().item<double>(), 0.5, 5 * 0.5 / std::sqrt(4000.0));
  }
}

TEST(DropoutMask, KeepsAllOrNextToNothingAtTheEnds) {
  EXPECT_EQ(dropout_mask({50, 40}, 0, kKey, {0, 0}).sum().item<int64_t>(), 2000);
  // Expected 2e-6 elements of 2,000.
  EXPECT_EQ(dropout_mask({50, 40}, 1 - 1e-9, kKey, {0, 0}).sum().item<int64_t>(), 0);
  EXPECT_EQ(dropout_mask({0, 40}, 0.5, kKey, {0, 0}).numel(), 0);
}

// sum (x - m)^2 / (m (1 - p)) of the numbers of zeros in k groups of n elements, m = n p: chi-squared with k degrees of
// freedom, p being known. By Wilson and Hilferty's cube root it leaves +-4 of a standard normal once in 16,000 seeds.
double chi_squared_in_deviations(const at::Tensor& zeros_by_group, double n, double p) {
  const auto groups = static_cast<double>(zeros_by_group.numel());
  const at::Tensor off = zeros_by_group.to(at::kDouble) - n * p;
  const double chi_squared = (off * off).sum().item<double>() / (n * p * (1 - p));
  const double mean = 1 - 2 / (9 * groups);
  return (std::cbrt(chi_squared / groups) - mean) / std::sqrt(2 / (9 * groups));
}

class Rates : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Probabilities, Rates, ::testing::Values(0.1, 0.5, 0.73));

TEST_P(Rates, AreBinomialByElementByPositionAndByUpdate) {
  const double p = GetParam();
  constexpr int64_t kUpdates = 40, kPositions = 50, kElements = 63;  // 63: a last block of three
  std::vector<at::Tensor> masks;
  for (int64_t t = 0; t < kUpdates; ++t)
    masks.push_back(dropout_mask({kPositions, kElements}, p, derive_seed(11, "dropout", 0), {t, 0}));
  const at::Tensor zeros = at::stack(masks).eq(0);
  const auto n = static_cast<double>(zeros.numel());
  // Five standard deviations of a binomial: 1 in 1.7 million.
  EXPECT_NEAR(zeros.sum().item<double>() / n, p, 5 * std::sqrt(p * (1 - p) / n));
  EXPECT_LT(std::abs(chi_squared_in_deviations(zeros.sum(at::IntArrayRef{0, 1}), kUpdates * kPositions, p)),
            4);
  EXPECT_LT(std::abs(chi_squared_in_deviations(zeros.sum(at::IntArrayRef{0, 2}), kUpdates * kElements, p)),
            4);
  EXPECT_LT(std::abs(chi_squared_in_deviations(zeros.sum(at::IntArrayRef{1, 2}), kPositions * kElements, p)),
            4);
}

// Neighbours along each coordinate are both zero with probability p^2. Pairs that share an element have covariance
// p^3 - p^4, so the variance of their mean is at most p^2 (1 - p) (1 + 3p) / n; five standard deviations: 1 in 1.7 million.
TEST_P(Rates, DoNotDependOnANeighbour) {
  const double p = GetParam();
  std::vector<at::Tensor> masks;
  for (int64_t t = 0; t < 60; ++t) masks.push_back(dropout_mask({60, 64}, p, kKey, {t, 0}));
  const at::Tensor zeros = at::stack(masks).eq(0);
  for (int64_t dim = 0; dim < 3; ++dim) {
    const int64_t size = zeros.size(dim);
    const at::Tensor both = zeros.narrow(dim, 0, size - 1) & zeros.narrow(dim, 1, size - 1);
    const auto n = static_cast<double>(both.numel());
    EXPECT_NEAR(both.sum().item<double>() / n, p * p, 5 * p * std::sqrt((1 - p) * (1 + 3 * p) / n)) << dim;
  }
}

}  // namespace
}  // namespace basin
