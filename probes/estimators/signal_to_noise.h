// defines: SignalToNoise, G_j^2 / Var_j by parameter, and means of it over parameters with an error.
#pragma once

#include <ATen/core/Tensor.h>

#include "hessian/gradients/per_example_gradients.h"
#include "probes/estimators/noise_estimate.h"

namespace basin {

/// r_j = G_j^2 / V_j with V_j = 1/n sum_i g_ij^2 - G_j^2, flat float64. Parameters whose V_j is not above rounding are left out, r_j = 0:
/// that of the difference (units that are off for every example: 0/0), and that of gradients which would be 0 in exact arithmetic
/// (biases of attention's keys), which are below `rounding` of the largest.
struct SignalToNoise {
  at::Tensor ratio;    // r_j
  at::Tensor counted;  // 1 or 0
  /// By how much example i moves sum_j r_j, n times over and but for a constant: the derivative by the weight
  /// of the example in both moments (infinitesimal jackknife).
  ExampleWeights influence;
};
/// `rounding`: relative error of a mean square.
SignalToNoise signal_to_noise(const at::Tensor& mean, const at::Tensor& mean_square, double rounding);

struct SignalToNoiseEstimate {
  Estimate population, finite;  // of a distribution; of the set of set_examples that the n were drawn from
};
/// The estimate from a mean m of r_j with these influences [n] of the examples on it. With S_j^2 = V_j n / (n - 1)
/// unbiased and G_j^2 too large by S_j^2 / n, or S_j^2 (1/n - 1/N) in a set of N whose V_j is S_j^2 (N - 1) / N:
///   population: m (n - 1) / n - 1/n,   finite: (m (n - 1) / n - 1/n + 1/N) N / (N - 1).
SignalToNoiseEstimate estimate_signal_to_noise(double mean_ratio, const at::Tensor& influence,
                                               int64_t set_examples);

}  // namespace basin
