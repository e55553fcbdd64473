#include "probes/estimators/set_estimates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/math/nan.h"
#include "core/math/statistics.h"

namespace basin {

Estimate mean_of_set(const at::Tensor& values, int64_t set_numbers, const at::Tensor& variances) {
  const auto n = static_cast<double>(values.numel()), set = static_cast<double>(set_numbers);
  const double mean = values.mean().item<double>();
  if (n < set && n < 2) return {mean, kNaN, kNaN, kNaN};
  double squared_error = n < set ? (1 - n / set) * values.var(/*unbiased=*/true).item<double>() / n : 0;
  if (variances.defined()) squared_error += variances.mean().item<double>() / set;
  if (squared_error == 0) return {mean, 0, mean, mean};
  const double error = std::sqrt(squared_error), reach = student_quantile(std::max(n - 1, 1.0)) * error;
  return {mean, error, mean - reach, mean + reach};
}

Estimate share_of_set(int64_t count, int64_t numbers, int64_t set_numbers) {
  const auto k = static_cast<double>(count), n = static_cast<double>(numbers),
             set = static_cast<double>(set_numbers);
  const double share = k / n, z = 1.959963984540054;
  if (numbers == set_numbers) return {share, 0, share, share};
  const double draws = n * (set - 1) / (set - n), shrink = 1 + z * z / draws;
  const double centre = (share + z * z / (2 * draws)) / shrink;
  const double half = z / shrink * std::sqrt(share * (1 - share) / draws + z * z / (4 * draws * draws));
  const double low = count == 0 ? 0 : std::max(centre - half, k / set),
               high = std::min(centre + half, (k + set - n) / set);
  return {share, (high - low) / (2 * z), low, high};
}

}  // namespace basin
