#include "core/math/statistics.h"

#include <cmath>
#include <numeric>

namespace basin {
namespace {

double plain_mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

SampleMean mean_of(const std::vector<double>& samples) {
  const double error = samples.size() > 1 ? std::sqrt(covariance_of_means(samples, samples)) : NAN;
  return {plain_mean(samples), error, static_cast<int64_t>(samples.size())};
}

double covariance_of_means(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size()), mean_a = plain_mean(a), mean_b = plain_mean(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / (n - 1) / n;
}

double student_quantile(double degrees_of_freedom) {
  if (degrees_of_freedom == 1)
    return 12.706204736432095;  // the series is off by a tenth and a hundredth here
  if (degrees_of_freedom == 2) return 4.302652729696142;
  const double z = 1.959963984540054, v = degrees_of_freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
         (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * v * v * v * v);
}

}  // namespace basin
