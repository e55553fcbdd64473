// defines: SampleMean, mean_of(), covariance_of_means(), median() and student_quantile().
#pragma once

#include <cstdint>
#include <vector>

namespace basin {

/// A mean over independent samples and its standard error (NaN for fewer than two).
struct SampleMean {
  double value = 0, standard_error = 0;
  int64_t samples = 0;
};
SampleMean mean_of(const std::vector<double>& samples);

/// Covariance of two means over the same samples: sum_i (a_i - mean a)(b_i - mean b) / (n (n - 1)).
double covariance_of_means(const std::vector<double>& a, const std::vector<double>& b);

/// The mean of the two in the middle of an even number; NaN of none.
double median(std::vector<double> samples);

/// The quantile of Student's t above which a share `tail` lies; by default the half width of a two-sided 95 % interval in standard
/// errors. Inverts the incomplete beta function (Abramowitz & Stegun 26.7.1), to 1e-9. Degrees of freedom above 0, of any size.
double student_quantile(double degrees_of_freedom, double tail = 0.025);

}  // namespace basin
