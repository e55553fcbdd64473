#include "core/math/statistics.h"

#include <Eigen/Core>

#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

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

double median(std::vector<double> samples) {
  if (samples.empty()) return NAN;
  const auto middle = samples.begin() + static_cast<int64_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

double student_quantile(double degrees_of_freedom, double tail) {
  if (!(degrees_of_freedom > 0)) return NAN;
  const double v = std::min(degrees_of_freedom, 1e7);  // from there on normal to 3e-7
  const auto above = [v](double t) { return 0.5 * Eigen::numext::betainc(v / 2, 0.5, v / (v + t * t)); };
  double low = 0, high = 1;
  while (above(high) > tail) low = std::exchange(high, 2 * high);
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2)
    (above(middle) > tail ? low : high) = middle;
  return high;
}

}  // namespace basin
