#include "probes/estimators/signal_to_noise.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/math/statistics.h"

namespace basin {

SignalToNoise signal_to_noise(const at::Tensor& mean, const at::Tensor& mean_square, double rounding) {
  const at::Tensor g2 = mean.square(), variance = mean_square - g2;
  const at::Tensor counted = variance > (mean_square + rounding * mean_square.max()) * rounding;
  const auto where_counted = [&](const at::Tensor& values) {
    return at::where(counted, values, at::zeros_like(values));
  };
  const at::Tensor ratio = where_counted(g2 / variance), slope = where_counted(mean / variance);
  // d(G^2/V) with dG = g - G and dV = g^2 - (V + G^2) - 2 G (g - G).
  return {ratio, counted.to(at::kDouble), {2 * slope * (1 + ratio), where_counted(-ratio / variance)}};
}

SignalToNoiseEstimate estimate_signal_to_noise(double mean_ratio, const at::Tensor& influence,
                                               int64_t set_examples) {
  const auto n = static_cast<double>(influence.numel()), set = static_cast<double>(set_examples);
  const double error = mean_of(to_doubles(influence)).standard_error, t = student_quantile(n - 1);
  const auto interval = [&](double value, double standard_error) {
    return Estimate{value, standard_error, value - t * standard_error, value + t * standard_error};
  };
  const double unbiased = mean_ratio * (n - 1) / n - 1 / n, shrink = (n - 1) / n, grow = set / (set - 1);
  return {interval(unbiased, error * shrink),
          interval((unbiased + 1 / set) * grow, error * shrink * grow * std::sqrt(1 - n / set))};
}

}  // namespace basin
