#include "core/math/ratio_estimate.h"
#include "core/math/nan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace basin {

namespace {

/// All rho with (a - rho b)^2 <= t^2 (vaa - 2 rho vab + rho^2 vbb): the rho between the two roots of a
/// parabola where b is resolved, and outside of them where it is not.
struct Fieller {
  Fieller(double a, double b, double vaa, double vbb, double vab, double t)
      : square(b * b - t * t * vbb), linear(a * b - t * t * vab) {
    const double constant = a * a - t * t * vaa;
    discriminant = linear * linear - square * constant;
    resolved = square > 0 && b > 0;
  }
  double square, linear, discriminant;
  bool resolved;
};

}  // namespace

Estimate signed_ratio(double a, double b, double vaa, double vbb, double vab, double t) {
  const Fieller set(a, b, vaa, vbb, vab, t);
  const double ratio = a / b;
  Estimate result{ratio, std::numeric_limits<double>::quiet_NaN(), -kInfinity, kInfinity};
  if (!set.resolved) return result;
  const double root = std::sqrt(std::max(0.0, set.discriminant));  // never negative but for rounding
  result.error = std::sqrt(std::max(0.0, vaa - 2 * ratio * vab + ratio * ratio * vbb)) / std::abs(b);
  result.low = (set.linear - root) / set.square;
  result.high = (set.linear + root) / set.square;
  return result;
}

Estimate fieller_ratio(double a, double b, double vaa, double vbb, double vab, double t) {
  const Fieller set(a, b, vaa, vbb, vab, t);
  Estimate result = signed_ratio(a, b, vaa, vbb, vab, t);
  result.low = std::max(0.0, result.low);
  if (set.square < 0 && set.discriminant > 0) {
    // The set is the outside of two roots. Its part above the larger one is what a ratio >= 0 leaves, if that
    // is positive.
    const double larger = (set.linear - std::sqrt(set.discriminant)) / set.square;
    const double smaller = (set.linear + std::sqrt(set.discriminant)) / set.square;
    if (larger > 0 && smaller < 0) result.low = larger;
  }
  return result;
}

}  // namespace basin
