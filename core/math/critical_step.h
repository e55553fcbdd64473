// defines: critical_step(), how far along a direction a loss first rises above where it began.
#pragma once

#include <cstdint>
#include <functional>

#include "core/math/nan.h"

namespace basin {

/// [low, high] holds the critical step: the loss at `low` is at most, at `high` above that at 0. `value`, the middle,
/// is NaN where there is none: `why` says so.
struct CriticalStep {
  enum class Why { found, no_descent, never_rises };
  double value = kNaN, low = kNaN, high = kNaN;
  int64_t evaluations = 0;
  Why why = Why::found;
};

/// The smallest s > 0 with loss(s) > loss_at_zero, by halving or doubling from s = 1 until the two differ, then
/// bisection until high - low <= tolerance * low. On a quadratic of slope -a and curvature b > 0 it is 2 a / b. A
/// loss that isn't finite is above. A rise and fall between two steps tried is not seen.
///
/// Times the learning rate of the update it is the critical learning rate of arXiv 2601.16979, and 2 over that the
/// critical sharpness. Cost: 5 or 6 evaluations at a tolerance of 1/8 where the step lies between 1/2 and 4; one more for
/// each further factor of 2. Ends after kMostDoublings of these.
CriticalStep critical_step(const std::function<double(double)>& loss, double loss_at_zero, double tolerance);
inline constexpr int kMostDoublings = 30;

/// A promised decrease below this share of the loss is lost in rounding: of float32 passes whose mean is taken in float64.
inline constexpr double kLossRounding = 1e-5;

}  // namespace basin
