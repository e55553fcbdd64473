// Made by scripts/forecast_calibration.py --write out of results/2026-11-22-quick and -quick-tune: not to be edited.
// defines: the constants of laws and trials, calibrated on the quick setting (docs/forecast.md#calibration).
#pragma once

namespace basin {

/// Mean and standard deviation of log(measured/predicted) over the nine large-batch cells.
struct LawError {
  double shift, deviation;
};
inline constexpr LawError kLimitsError = {-0.071, 0.162};
inline constexpr LawError kInverseError = {0.007, 0.223};
inline constexpr LawError kNoiseScaleError = {-0.052, 0.166};
inline constexpr LawError kFitError = {0.698, 0.675};
inline constexpr LawError kQuickMedianError = {-0.037, 0.189};

inline constexpr double kQuickMedian = 37.6;  // effective updates

/// Each as in forecast/trials.h.
inline constexpr double kCurvatureInRate = 0.59;
inline constexpr double kRateError = 0.34;
inline constexpr double kEdge = 1.6;
inline constexpr double kEdgeError = 0.3;

}  // namespace basin
