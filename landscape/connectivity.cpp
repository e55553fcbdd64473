#include "landscape/connectivity.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace basin {

Excess highest_excess(const std::vector<double>& t, const std::vector<double>& values) {
  const auto finite = [](double value) { return std::isfinite(value); };
  Excess highest;
  if (!std::all_of(values.begin(), values.end(), finite)) return highest;
  for (size_t i = 1; i + 1 < values.size(); ++i) {
    const double excess = values[i] - ((1 - t[i]) * values.front() + t[i] * values.back());
    if (highest.point < 0 || excess > highest.value) highest = {static_cast<int64_t>(i), excess};
  }
  return highest;
}

SampleMean excess_over_examples(double t, const at::Tensor& at_t, const at::Tensor& at_start,
                                const at::Tensor& at_end) {
  const at::Tensor excess =
      (at_t.to(at::kDouble) - ((1 - t) * at_start.to(at::kDouble) + t * at_end.to(at::kDouble))).contiguous();
  const double* data = excess.const_data_ptr<double>();
  return mean_of(std::vector<double>(data, data + excess.numel()));
}

double mean_along(const std::vector<double>& values, const std::vector<double>& steps) {
  double sum = 0, length = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += (values[i] + values[i + 1]) / 2 * steps[i];
    length += steps[i];
  }
  return length > 0 ? sum / length : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace basin
