// The weights that give a batch the noise of a smaller one, against enumeration and closed forms: no Monte Carlo but for xi itself.
#include "trainers/hooks/noise_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "data/example_stream.h"

namespace basin::testing {
namespace {

using Vector = std::vector<double>;

/// a - k/B as a matrix on xi: column i is what the i-th basis vector gives. Linear, so Cov(a) = AA' for any xi of variance 1.
std::vector<Vector> columns_of(const NoiseUnits& units, double b) {
  const double s = noise_strength(units, b);
  const Vector none = noise_weights(units, Vector(units.counts.size(), 0), s);
  std::vector<Vector> columns;
  for (size_t i = 0; i < units.counts.size(); ++i) {
    Vector basis(units.counts.size(), 0);
    basis[i] = 1;
    columns.push_back(noise_weights(units, basis, s));
    for (size_t x = 0; x < none.size(); ++x) columns.back()[x] -= none[x];
  }
  return columns;
}

std::vector<Vector> covariance_of(const NoiseUnits& units, double b) {
  const std::vector<Vector> columns = columns_of(units, b);
  const size_t m = columns.size();
  std::vector<Vector> covariance(m, Vector(m, 0));
  for (const Vector& column : columns)
    for (size_t x = 0; x < m; ++x)
      for (size_t y = 0; y < m; ++y) covariance[x][y] += column[x] * column[y];
  return covariance;
}

TEST(NoiseWeights, HaveTheCovarianceOfTheFormula) {
  const std::vector<std::pair<NoiseUnits, double>> cases{
      {{{1, 1, 1, 1, 1, 1}}, 2}, {{{3, 1, 2, 2}}, 1.5}, {{{1, 1}}, 1}, {{{2, 2, 2}}, 2.25}};
  for (const auto& [units, b] : cases) {
    const double m = static_cast<double>(units.counts.size());
    double size = 0, squares = 0;
    for (const int64_t k : units.counts) {
      size += static_cast<double>(k);
      squares += static_cast<double>(k * k);
    }
    // s^2/m^2 (I - 11'/m) with s^2 = m^2/(m-1) (1/b - sum k^2/B^2).
    const double scale = (1 / b - squares / (size * size)) / (m - 1);
    const std::vector<Vector> covariance = covariance_of(units, b);
    for (size_t x = 0; x < covariance.size(); ++x)
      for (size_t y = 0; y < covariance.size(); ++y)  // a dozen roundings of numbers below 1
        EXPECT_NEAR(covariance[x][y], scale * ((x == y ? 1 : 0) - 1 / m), 1e-15);
  }
}

TEST(NoiseWeights, WithoutNoiseAreSharesAndAlwaysAddUpToOne) {
  const NoiseUnits units{{3, 1, 2, 2}};
  EXPECT_EQ(noise_weights(units, {5, -1, 2, 0.5}, 0), (Vector{0.375, 0.125, 0.25, 0.25}));
  const Vector weights = noise_weights(units, {5, -1, 2, 0.5}, 0.7);
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-15);
  EXPECT_NE(weights[0], 0.375);
}

double covariance_entry(const std::vector<Vector>& values, size_t p, size_t q) {
  double mean_p = 0, mean_q = 0, product = 0;
  for (const Vector& v : values) {
    mean_p += v[p] / static_cast<double>(values.size());
    mean_q += v[q] / static_cast<double>(values.size());
    product += v[p] * v[q] / static_cast<double>(values.size());
  }
  return product - mean_p * mean_q;
}

// Every subset of b of n gradients, each as likely as another.
TEST(NoiseWeights, GiveTheCovarianceOfDrawsWithoutReplacement) {
  constexpr size_t kExamples = 8, kDimensions = 3;
  std::vector<Vector> gradients(kExamples, Vector(kDimensions));
  for (size_t x = 0; x < kExamples; ++x)
    for (size_t d = 0; d < kDimensions; ++d)
      gradients[x][d] = 0.3 + std::sin(1.0 + 2.7 * static_cast<double>(kDimensions * x + d));
  for (const int b : {1, 2, 5, 7}) {
    std::vector<Vector> means;
    for (unsigned subset = 0; subset < (1U << kExamples); ++subset) {
      if (std::popcount(subset) != b) continue;
      means.emplace_back(kDimensions, 0);
      for (size_t x = 0; x < kExamples; ++x)
        for (size_t d = 0; d < kDimensions; ++d)
          if ((subset >> x & 1U) != 0) means.back()[d] += gradients[x][d] / b;
    }
    const std::vector<Vector> columns = columns_of({std::vector<int64_t>(kExamples, 1)}, b);
    for (size_t p = 0; p < kDimensions; ++p) {
      for (size_t q = 0; q < kDimensions; ++q) {
        double weighted = 0;  // of G AA' G'
        for (const Vector& column : columns) {
          double at_p = 0, at_q = 0;
          for (size_t x = 0; x < kExamples; ++x) {
            at_p += column[x] * gradients[x][p];
            at_q += column[x] * gradients[x][q];
          }
          weighted += at_p * at_q;
        }
        // Differences of means of squares of order 1, over at most 56 subsets.
        EXPECT_NEAR(weighted, covariance_entry(means, p, q), 1e-14) << "b " << b;
      }
    }
  }
}

TEST(NoiseWeights, AreSharesWhereBIsWhatTheBatchIsWorth) {
  const NoiseUnits once{std::vector<int64_t>(37, 1)}, repeated{{13, 14, 13, 13, 12}};
  EXPECT_EQ(noise_strength(once, 37), 0);
  EXPECT_EQ(noise_strength(repeated, repeated.effective()), 0);
  EXPECT_GT(noise_strength(repeated, repeated.effective() * 0.999), 0);
  EXPECT_TRUE(std::isnan(noise_strength(once, 38)));
  EXPECT_EQ(noise_strength({{4}}, 1), 0);
}

// 65,536 draws of 5,000, each 12 to 14 times, are worth nearly 5,000 examples, not 65,536.
TEST(NoiseWeights, CountRepeatedExamplesOnce) {
  ExampleStream stream(1, 5000);
  const NoiseUnits units{stream.slice(3 * 65536, 65536, true).counts};
  EXPECT_EQ(units.size(), 65536);
  EXPECT_NEAR(units.effective(), 4990, 10);
  // Weights by position would have (1/b - 1/B) in the place of (1/b - 1/n_eff).
  for (const auto& [b, excess] : {std::pair{256.0, 1.05}, {2048.0, 1.64}}) {
    const double m = static_cast<double>(units.counts.size());
    const double s2 = std::pow(noise_strength(units, b), 2) * (m - 1) / (m * m);
    EXPECT_NEAR((1 / b - 1.0 / 65536) / s2, excess, 0.005);
  }
}

TEST(NoiseDraws, HaveMeanZeroAndVarianceOne) {
  constexpr int64_t kUpdates = 40, kUnits = 2500;
  for (const bool rademacher : {false, true}) {
    const NoiseDraws draws(7, "test", rademacher);
    double sum = 0, squares = 0, fourth = 0, products = 0;
    for (int64_t t = 0; t < kUpdates; ++t) {
      for (int64_t x = 0; x < kUnits; ++x) {
        const double xi = draws.at(t, x);
        sum += xi;
        squares += xi * xi;
        fourth += xi * xi * xi * xi;
        products += xi * draws.at(t + 1, x);
      }
    }
    // Standard errors of 100,000 draws: 0.0032, 0.0045 (0 for signs), 0.031, 0.0032; five of them.
    constexpr double n = kUpdates * kUnits;
    EXPECT_NEAR(sum / n, 0, 0.016);
    EXPECT_NEAR(squares / n, 1, rademacher ? 0 : 0.023);
    EXPECT_NEAR(fourth / n, rademacher ? 1 : 3, 0.16);
    EXPECT_NEAR(products / n, 0, 0.016);
  }
  EXPECT_NE(NoiseDraws(7, "test", false).at(3, 4), NoiseDraws(8, "test", false).at(3, 4));
  EXPECT_NE(NoiseDraws(7, "test", false).at(3, 4), NoiseDraws(7, "other", false).at(3, 4));
  EXPECT_NE(NoiseDraws(7, "test", false).at(3, 4), NoiseDraws(7, "test", false).at(4, 3));
}

}  // namespace
}  // namespace basin::testing
