// defines: SampleMean, mean_of(), covariance_of_means() and student_quantile().
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

/// Two-sided 95 % quantile of Student's t: exact for 1 and 2 degrees of freedom, by the Cornish-Fisher series
/// within 0.5 % from 3 on.
double student_quantile(double degrees_of_freedom);

}  // namespace basin
