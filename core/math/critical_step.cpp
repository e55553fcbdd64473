#include "core/math/critical_step.h"

#include <cmath>

namespace basin {

CriticalStep critical_step(const std::function<double(double)>& loss, double loss_at_zero, double tolerance) {
  CriticalStep found;
  const auto rises = [&](double step) {
    ++found.evaluations;
    const double value = loss(step);
    return !std::isfinite(value) || value > loss_at_zero;
  };
  double low = 1, high = 1;
  const bool first_rises = rises(1);
  for (int i = 0;; ++i) {
    if (i == kMostDoublings) {
      found.why = first_rises ? CriticalStep::Why::no_descent : CriticalStep::Why::never_rises;
      return found;
    }
    if (first_rises) {
      low = high / 2;
      if (!rises(low)) break;
      high = low;
    } else {
      high = low * 2;
      if (rises(high)) break;
      low = high;
    }
  }
  while (high - low > tolerance * low) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;  // no number lies between
    (rises(middle) ? high : low) = middle;
  }
  found.low = low;
  found.high = high;
  found.value = (low + high) / 2;
  return found;
}

}  // namespace basin
