#include <gtest/gtest.h>

#include <cmath>

#include "core/hash.h"
#include "forecast/calibration.h"
#include "forecast/seeds.h"
#include "forecast/trials.h"

namespace basin {
namespace {

LawUpdates fifty(const Evidence&, int64_t) { return {50}; }

Evidence anchor_of_50() {
  Evidence evidence;
  evidence.examples = 1000;
  evidence.sizes = {{200, 0.1, 100, 100}};  // eta S = 10: the best rate of 50 updates is 0.2
  return evidence;
}

TestCell cell_of(std::vector<double> rates, size_t cap, double factor = 1) {
  TestCell cell;
  cell.batch = 1000;
  cell.examples = 1000;
  cell.rates = std::move(rates);
  cell.factors.assign(cap, factor);
  return cell;
}

TEST(ForecastSchedule, EffectiveUpdatesAreLaidOverTheSchedule) {
  TestCell cell = cell_of({0.2}, 100, 1);
  cell.factors[0] = 0.5;  // two of warm-up: 0.5 + 1 + ...
  EXPECT_EQ(cell.updates_of(0.5), 1);
  EXPECT_EQ(cell.updates_of(10), 11);
  EXPECT_EQ(cell.updates_of(99.5), 100);
  EXPECT_TRUE(std::isinf(cell.updates_of(99.6)));
}

TEST(ForecastTrials, WithoutErrorOfTheLawOnlyTheTrialsSpread) {
  const Law exact{"exact", "", fifty, 0, 0};
  // So dense that one is always near the best: 50, and one more where the sum falls just short.
  std::vector<double> dense;
  for (int i = -60; i <= 60; ++i) dense.push_back(0.2 * std::exp(i / 20.0));
  const Prediction prediction = predict_cell(exact, anchor_of_50(), cell_of(dense, 1000));
  for (const double q : prediction.quantiles) EXPECT_NEAR(std::exp(q), 50.5, 0.51);
  EXPECT_EQ(prediction.not_reached, 0);
}

TEST(ForecastTrials, QuantilesAreThoseOfTheGaussian) {
  const Law wide{"wide", "", fifty, 0, 0.5};
  std::vector<double> dense;
  for (int i = -120; i <= 120; ++i) dense.push_back(0.2 * std::exp(i / 20.0));
  const Prediction prediction = predict_cell(wide, anchor_of_50(), cell_of(dense, 100000));
  // Normal quantiles 1.6449 and 0.6745; 20,000 draws have them within 0.5/sqrt(20000)/density = 0.017 (at 5 %) and
  // whole updates round by 1 in 22.
  const double z[] = {-1.6449, -0.6745, 0, 0.6745, 1.6449};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(prediction.quantiles[i], std::log(50) + 0.5 * z[i], 0.05) << i;
}

// Above the edge by 9 deviations of rate and edge together; the best rate is 0.2.
TEST(ForecastTrials, RatesBeyondTheEdgeReachNothing) {
  const Law exact{"exact", "", fifty, 0, 0};
  const double beyond = 0.2 * kEdge * std::exp(9 * std::hypot(kRateError, kEdgeError));
  const Prediction prediction = predict_cell(exact, anchor_of_50(), cell_of({beyond}, 1000));
  EXPECT_EQ(prediction.not_reached, 1);
  for (const double q : prediction.quantiles) EXPECT_TRUE(std::isinf(q));
}

TEST(ForecastTrials, TheCapIsSeen) {
  const Law wide{"wide", "", fifty, 0, 0.5};
  std::vector<double> dense;
  for (int i = -60; i <= 60; ++i) dense.push_back(0.2 * std::exp(i / 20.0));
  const Prediction prediction = predict_cell(wide, anchor_of_50(), cell_of(dense, 50));
  EXPECT_NEAR(prediction.not_reached, 0.5,
              0.03);  // the median is the cap; 20,000 draws: 0.0035, rounding 0.02
  EXPECT_TRUE(std::isinf(prediction.quantiles[3]));
  EXPECT_TRUE(std::isfinite(prediction.quantiles[1]));
}

// hashlib: [int(sha256(f"{h}:{i}".encode()).hexdigest()[:8], 16) % 2**31 + 1 for i in (1, 2, 3)], h = sha256(b"").hexdigest().
TEST(ForecastSeeds, AreThoseOfHashlib) {
  const std::vector<int64_t> golden = {1401687796, 594886622, 1795769557};
  EXPECT_EQ(seeds_of_hash(sha256_hex(""), 3), golden);
}

}  // namespace
}  // namespace basin
