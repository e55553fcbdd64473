// The points of a search: the sequence against SciPy, how evenly it fills the cube, ranges and rungs by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "study/candidates.h"
#include "study/quasi_random.h"

namespace basin {
namespace {

using ::testing::ElementsAre;

using Points = std::vector<std::vector<double>>;

Points points_of(int64_t dimensions, int64_t seed, int64_t count) {
  const HaltonSequence sequence(dimensions, seed);
  Points points;
  for (int64_t i = 0; i < count; ++i) points.push_back(sequence.point(i));
  return points;
}

// scipy.stats.qmc.Halton(3, scramble=False).random(12), SciPy 1.17.1; tests/python/studies/test_tune.py compares more
// of them.
const Points kScipy = {{0.0, 0.0, 0.0},
                       {0.5, 0.3333333333333333, 0.2},
                       {0.25, 0.6666666666666666, 0.4},
                       {0.75, 0.1111111111111111, 0.6000000000000001},
                       {0.125, 0.4444444444444444, 0.8},
                       {0.625, 0.7777777777777777, 0.04},
                       {0.375, 0.2222222222222222, 0.24000000000000002},
                       {0.875, 0.5555555555555556, 0.44},
                       {0.0625, 0.8888888888888888, 0.6400000000000001},
                       {0.5625, 0.037037037037037035, 0.8400000000000001},
                       {0.3125, 0.37037037037037035, 0.08},
                       {0.8125, 0.7037037037037037, 0.28}};

TEST(HaltonSequence, UnscrambledIsScipys) {
  const Points ours = points_of(3, 0, static_cast<int64_t>(kScipy.size()));
  for (size_t i = 0; i < kScipy.size(); ++i) {
    for (size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(ours[i][j], kScipy[i][j], 1e-15) << i << " " << j;  // order of sums
  }
}

// Interval of width 1/count that each point's coordinate lies in.
std::vector<int64_t> strata(const Points& points, size_t coordinate, int64_t count) {
  std::vector<int64_t> found;
  for (const std::vector<double>& point : points)
    found.push_back(static_cast<int64_t>(point[coordinate] * static_cast<double>(count)));
  std::sort(found.begin(), found.end());
  return found;
}

TEST(HaltonSequence, ScrambledHasOnePointAnInterval) {
  for (const int64_t seed : {1, 2, 77}) {
    std::vector<int64_t> all(25);
    for (const auto& [coordinate, count] : {std::pair<size_t, int64_t>{0, 16}, {1, 9}, {2, 25}}) {
      all.resize(static_cast<size_t>(count));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(strata(points_of(3, seed, count), coordinate, count), all) << seed;
    }
  }
}

TEST(HaltonSequence, HangsOnTheSeedAndIsExtensible) {
  EXPECT_NE(points_of(2, 1, 4), points_of(2, 2, 4));
  const Points longer = points_of(3, 1, 8);
  for (size_t i = 0; i < 4; ++i)  // fewer dimensions and points are a corner of more
    EXPECT_EQ(points_of(2, 1, 4)[i], (std::vector<double>{longer[i][0], longer[i][1]}));
  for (const std::vector<double>& point : points_of(6, 5, 500))
    for (const double x : point) EXPECT_TRUE(x >= 0 && x < 1) << x;
}

// L2 star discrepancy squared (T. Warnock, 1972).
double discrepancy(const Points& points) {
  const double n = static_cast<double>(points.size()), d = static_cast<double>(points[0].size());
  double single = 0, pairs = 0;
  for (const std::vector<double>& x : points) {
    double product = 1;
    for (const double u : x) product *= 1 - u * u;
    single += product;
    for (const std::vector<double>& y : points) {
      double overlap = 1;
      for (size_t j = 0; j < x.size(); ++j) overlap *= 1 - std::max(x[j], y[j]);
      pairs += overlap;
    }
  }
  return std::pow(3, -d) - std::pow(2, 1 - d) / n * single + pairs / (n * n);
}

TEST(HaltonSequence, FillsTheCubeMoreEvenlyThanChance) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (const int64_t count : {16, 64}) {
    double ours = 0, chance = 0;
    for (int64_t seed = 1; seed <= 20; ++seed) {
      ours += discrepancy(points_of(2, seed, count)) / 20;
      Points draws(static_cast<size_t>(count), std::vector<double>(2));
      for (std::vector<double>& point : draws)
        for (double& x : point) x = uniform(random);
      chance += discrepancy(draws) / 20;
    }
    // The mean of 20 draws is within a tenth or two of its expectation; ours is 4 times less at 16 points and
    // falls faster.
    EXPECT_LT(ours, chance / 3) << count;
  }
}

SearchRange range(const std::string& key, double low, double high, const std::string& scale) {
  SearchRange r;
  r.key = key;
  r.low = low;
  r.high = high;
  r.scale = scale;
  r.where = "s.toml:3";
  return r;
}

TEST(SearchRange, SpreadsByItsScale) {
  const RunOptions options;
  EXPECT_DOUBLE_EQ(value_in(range("learning_rate", 0.01, 100, "log"), 0.5, options), 1);
  EXPECT_DOUBLE_EQ(value_in(range("warmup", 0.1, 0.3, "linear"), 0.5, options), 0.2);
  // 1 - m from 0.1 to 0.001: halfway 0.01.
  EXPECT_DOUBLE_EQ(value_in(range("sgd.momentum", 0.9, 0.999, "one_minus_log"), 0.5, options), 0.99);
  EXPECT_DOUBLE_EQ(value_in(range("sgd.momentum", 0.9, 0.999, "one_minus_log"), 0, options), 0.9);
}

TEST(SearchRange, GrowsWithTheBatch) {
  RunOptions options;
  options.train.batch_size = 1024;  // base_batch 256
  SearchRange relative = range("learning_rate", 0.01, 100, "log");
  relative.relative_to = "sqrt_batch";
  EXPECT_DOUBLE_EQ(value_in(relative, 0.5, options), 2);
  relative.relative_to = "batch";
  EXPECT_DOUBLE_EQ(value_in(relative, 0.5, options), 4);
}

TEST(Candidates, AreTheSamePointsWhateverTheRangesAre) {
  TuneOptions tune;
  tune.trials = 5;
  const RunOptions options;
  const auto one = sampled_candidates({range("learning_rate", 0.1, 1, "log")}, tune, options);
  const auto two = sampled_candidates(
      {range("learning_rate", 5, 500, "log"), range("sgd.momentum", 0.5, 0.99, "linear")}, tune, options);
  ASSERT_EQ(one.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(one[i].trial, static_cast<int64_t>(i));
    EXPECT_EQ(one[i].values[0].unit, two[i].values[0].unit);
    EXPECT_EQ(one[i].values[0].edge, one[i].values[0].unit < 0.1   ? Edge::low
                                     : one[i].values[0].unit > 0.9 ? Edge::high
                                                                   : Edge::none);
  }
}

TEST(Candidates, RoundWholeNumbers) {
  TuneOptions tune;
  tune.trials = 8;
  std::set<int64_t> widths;
  for (const Candidate& c :
       sampled_candidates({range("keskar_c1.width", 4, 7, "linear")}, tune, RunOptions()))
    widths.insert(std::get<int64_t>(c.values[0].value));
  EXPECT_THAT(widths, ElementsAre(4, 5, 6, 7));  // eight points, one in each eighth of the range
}

TEST(Candidates, OfAListKnowItsEnds) {
  const auto candidates = listed_candidates({0.2, 0.1, 0.4, 0.2});
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].values[0].edge, Edge::none);
  EXPECT_EQ(candidates[1].values[0].edge, Edge::low);
  EXPECT_EQ(candidates[2].values[0].edge, Edge::high);
}

TuneOptions halving(int64_t trials, int64_t eta, int64_t rungs = 0) {
  TuneOptions tune;
  tune.trials = trials;
  tune.halving = eta;
  tune.rungs = rungs;
  return tune;
}

// "16 at 1/8" as {16, 8}.
std::vector<std::pair<int64_t, int64_t>> shape(const TuneOptions& tune) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Rung& rung : rungs_of(tune, "s.toml:1")) pairs.emplace_back(rung.trials, rung.divisor);
  return pairs;
}

TEST(Rungs, LeaveAtLeastEtaTrialsWithTheWholeBudget) {
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_THAT(shape(halving(16, 0)), ElementsAre(Pair(16, 1)));
  EXPECT_THAT(shape(halving(16, 2)), ElementsAre(Pair(16, 8), Pair(8, 4), Pair(4, 2), Pair(2, 1)));
  EXPECT_THAT(shape(halving(16, 4)), ElementsAre(Pair(16, 4), Pair(4, 1)));
  EXPECT_THAT(shape(halving(20, 3)), ElementsAre(Pair(20, 3), Pair(6, 1)));
  EXPECT_THAT(shape(halving(16, 2, 2)), ElementsAre(Pair(16, 2), Pair(8, 1)));
  EXPECT_THAT(shape(halving(4, 4, 2)), ElementsAre(Pair(4, 4), Pair(1, 1)));
  EXPECT_THROW(rungs_of(halving(3, 2), "s.toml:1"), ConfigError);
  EXPECT_THROW(rungs_of(halving(16, 4, 4), "s.toml:1"), ConfigError);
  EXPECT_THROW(rungs_of(halving(16, 0, 2), "s.toml:1"), ConfigError);
}

TEST(Rungs, DivideTheBudgetThatTheProtocolGoesBy) {
  RunOptions options;
  options.train.epochs = 8;
  options.train.updates = 10;
  options.train.max_gradients = 1000;
  RunOptions a = options, u = options, b = options;
  divide_budget(a, 4);
  EXPECT_EQ(a.train.epochs, 2);
  EXPECT_EQ(a.train.updates, 10);
  u.train.protocol = "A-updates";
  divide_budget(u, 4);
  EXPECT_EQ(u.train.updates, 3);  // 2.5 rounded
  divide_budget(u, 100);
  EXPECT_EQ(u.train.updates, 1);
  b.train.protocol = "B";
  divide_budget(b, 3);
  EXPECT_EQ(b.train.max_gradients, 333);
  EXPECT_EQ(b.train.epochs, 8);
}

}  // namespace
}  // namespace basin
