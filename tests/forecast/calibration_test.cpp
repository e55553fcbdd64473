// The constants of the laws, from the numbers of the quick setting (golden_quick.h: scripts/forecast_calibration.py, whose laws and schedule
// are written in Python; tests/python/scripts/test_forecast_calibration.py compares both headers with what it makes).
#include <gtest/gtest.h>

#include <cmath>

#include "forecast/laws.h"
#include "optim/schedule.h"
#include "tests/forecast/golden_quick.h"

namespace basin {
namespace {

double effective(int64_t batch, int64_t updates) {
  const auto planned =
      static_cast<int64_t>(std::ceil(kQuickCap / static_cast<double>(std::min(batch, kQuickExamples))));
  ScheduleOptions options;
  options.schedule = "cosine";
  options.warmup = 0.05;
  const RateSchedule schedule(
      options, 1, 1, {batch, planned, static_cast<double>(kQuickExamples) / static_cast<double>(batch)});
  double sum = 0;
  for (int64_t t = 0; t < updates; ++t) sum += schedule.factor(t);
  return sum;
}

Evidence evidence_of(const QuickSetting& setting) {
  Evidence evidence;
  evidence.optimizer = setting.optimizer;
  evidence.examples = kQuickExamples;
  for (const int64_t batch : {32, 256}) {
    const int64_t updates = setting.updates.at(batch);
    evidence.sizes.push_back({batch, setting.rate, static_cast<double>(updates), effective(batch, updates)});
  }
  evidence.floor = setting.floor;
  evidence.noise_scale = setting.noise_scale;
  evidence.probed_batch = 256;
  return evidence;
}

TEST(ForecastCalibration, TheConstantsAreThoseOfTheQuickSetting) {
  for (const Law& law : forecast_laws()) {
    double sum = 0, squares = 0;
    for (const QuickSetting& setting : kQuickSetting) {
      for (const int64_t batch : {2048, 16384, 65536}) {
        const double error = std::log(effective(batch, setting.updates.at(batch)) /
                                      law.updates(evidence_of(setting), batch).value);
        sum += error;
        squares += error * error;
      }
    }
    const double mean = sum / 9, deviation = std::sqrt((squares - 9 * mean * mean) / 8);
    // The constants have three decimals, the doubled one half as many; floors of five digits move a mean by 1e-5.
    EXPECT_NEAR(law.shift, mean, 0.00052) << law.name;
    EXPECT_NEAR(law.deviation, 2 * deviation, 0.00104) << law.name;
  }
}

Evidence known() {
  Evidence evidence;
  evidence.optimizer = "sgd";
  evidence.examples = 1000;
  evidence.sizes = {{50, 0.1, 400, 390}, {200, 0.2, 120, 110}};
  evidence.floor = 30;
  evidence.noise_scale = 500;
  return evidence;
}

double updates_by(const std::string& law, const Evidence& evidence, int64_t batch) {
  for (const Law& known_law : forecast_laws())
    if (known_law.name == law) return known_law.updates(evidence, batch).value;
  return NAN;
}

// By hand: x(200) = 1/200 - 1/1000 = 0.004, 1 + 500 x = 3, S_noise = 110/3 = 36.67, S_full = sqrt(36.67 * 30) = 33.166.
// x(500) = 0.001, a quarter of x(200): 33.166 + (110 - 33.166)/4 = 52.374; by B_simple alone 36.67 + 73.33/4 = 55.
TEST(ForecastLaws, AgreeWithHandComputedValues) {
  EXPECT_NEAR(updates_by("limits", known(), 1000), 33.166, 0.001);
  EXPECT_NEAR(updates_by("limits", known(), 500), 52.374, 0.001);
  EXPECT_NEAR(updates_by("limits", known(), 4000), 33.166, 0.001) << "beyond N all are the same experiment";
  EXPECT_NEAR(updates_by("noise_scale", known(), 500), 55, 1e-9);
  EXPECT_NEAR(updates_by("inverse", known(), 400), 55, 1e-9);
  EXPECT_NEAR(updates_by("inverse", known(), 1000), 30, 1e-9) << "the stability limit";
  Evidence flat = known();
  flat.floor = 1;
  EXPECT_NEAR(updates_by("inverse", flat, 4000), 22, 1e-9) << "110 x 200/1000: beyond N nothing changes";
  // x(50) = 0.019; through both points: slope (390 - 110)/0.015 = 18667, constant 110 - 74.67 = 35.33.
  EXPECT_NEAR(updates_by("fit", known(), 1000), 35.333, 0.001);
}

TEST(ForecastLaws, NoRunIsFasterThanTheLimitOrSlowerThanTheAnchor) {
  Evidence interpolating = known();
  interpolating.noise_scale = 1e6;  // noise would leave no update at all
  EXPECT_NEAR(updates_by("limits", interpolating, 1000), 30, 1e-9);
  Evidence limited = known();
  limited.floor = 200;  // the limit binds at the small size already
  EXPECT_NEAR(updates_by("limits", limited, 1000), 110, 1e-9);
}

TEST(ForecastLaws, WithoutANumberThereIsAReason) {
  Evidence unprobed = known();
  unprobed.floor = unprobed.noise_scale = NAN;
  for (const Law& law : forecast_laws()) {
    const LawUpdates found = law.updates(unprobed, 1000);
    const bool needs_probes = law.name == "limits" || law.name == "inverse" || law.name == "noise_scale";
    EXPECT_EQ(std::isnan(found.value), needs_probes) << law.name;
    EXPECT_EQ(!found.reason.empty(), needs_probes) << law.name;
  }
}

}  // namespace
}  // namespace basin
