// defines: NoiseAverage, moving means of tr Sigma and |G|^2 and their ratio with an interval.
#pragma once

#include <cstdint>
#include <vector>

#include "core/math/ratio_estimate.h"

namespace basin {

struct NoiseMeans {
  Estimate tr_sigma, g2;  // errors NaN for one look
  Estimate b_simple;      // their ratio
  double looks = 0;       // effective number of looks
  bool resolved = false;  // the interval of |G|^2 lies above 0
};

/// Means over looks k = 1..n with weights w_k = beta^(n-k) / sum_i beta^(n-i), numerator and denominator of B
/// each for itself: a mean of ratios of noisy numbers is worthless. (The exponential averages of McCandlish
/// et al., appendix A.1, without the weight that they leave on their start.)
///
/// Looks being independent, the covariance of two means is Q / (1 - Q) sum_k w_k (x_k - mean x)(y_k - mean y)
/// with Q = sum_k w_k^2, unbiased; intervals take Student's t for 1/Q - 1 degrees of freedom (1/Q is the
/// effective number of looks, n at first, (1 + beta)/(1 - beta) at last), that of the ratio is Fieller's.
/// They are of the means over the window: drift of |G|^2 and tr Sigma within it widens them, and what lags
/// behind isn't in them.
class NoiseAverage {
 public:
  explicit NoiseAverage(double beta) : beta_(beta) {}
  /// Finite numbers.
  void add(double tr_sigma, double g2);
  NoiseMeans means() const;

  /// A list of fixed length; the same numbers go on from it to the bit.
  std::vector<double> state() const;
  void load_state(const std::vector<double>& state);

 private:
  double beta_;
  double weight_ = 0;   // sum_i beta^(n-i)
  double squares_ = 0;  // Q
  double trace_ = 0, g2_ = 0;
  double trace_trace_ = 0, g2_g2_ = 0, trace_g2_ = 0;  // sum_k w_k (x_k - mean x)(y_k - mean y)
};

}  // namespace basin
