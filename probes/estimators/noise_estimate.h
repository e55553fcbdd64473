// defines: estimate_noise(), tr Sigma and |G|^2 with jackknife covariances from group gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/math/ratio_estimate.h"

namespace basin {

/// Mean gradients of m groups of b examples each, and of the r = n - m b examples that fill no group.
struct GradientGroups {
  int64_t examples = 0, group_size = 1;
  std::function<at::Tensor(int64_t)>
      group;                         // j in [0, m) -> flat mean gradient; called twice for each j, in order
  std::function<at::Tensor()> rest;  // of the r others; called when r > 0
  int64_t groups() const { return examples / group_size; }
  int64_t left_over() const { return examples % group_size; }
};

/// tr Sigma, |G|^2 and their ratio.
struct NoiseNumbers {
  Estimate tr_sigma, g2, b_simple;
  bool resolved = false;  // the interval of |G|^2 leaves out 0
};

struct NoiseEstimate {
  NoiseNumbers population;  // the distribution that the set was drawn from
  NoiseNumbers finite;      // the set of set_examples, of which the gradients' examples are a random part
  bool all_finite = true;   // all gradients were finite numbers
};

/// ConfigError for fewer than 4 groups, or a set smaller than its part.
void check_noise_sizes(int64_t groups, int64_t examples, int64_t set_examples);

/// Needs at least 4 groups and set_examples >= gradients.examples; formulas in probes/noise_scale.h.
NoiseEstimate estimate_noise(const GradientGroups& gradients, int64_t set_examples);

/// What groups of one come to: the gradients g_i themselves aren't needed.
struct ExampleProducts {
  std::vector<double> square;      // |g_i|^2
  std::vector<double> along_mean;  // g_i . Gbar
  double mean_square = 0;          // |Gbar|^2
};
/// The same numbers as with groups of one.
NoiseEstimate estimate_noise(const ExampleProducts& gradients, int64_t set_examples);

/// tr Sigma and |Gbar|^2 of n examples in some inner product, and without the b examples of each group.
struct LeftOut {
  double n = 0, b = 1;
  double trace = 0, mean_square = 0;         // the former unbiased for a distribution
  std::vector<double> traces, mean_squares;  // of the n - b examples that each group leaves
  double grouping_variance = 0;              // of the trace over random groupings of the same examples
  bool definite = true;                      // the inner product is: the ratio is cut to [0, inf)
};
/// Errors by the jackknife over groups.
NoiseEstimate estimate_noise(const LeftOut& numbers, int64_t set_examples);

/// Variance over random groupings of T = mean_j |h_j - Gbar|^2 b n / (n - b), m groups of b of n examples.
/// `across`: (h_j - Gbar) . (h_k - Gbar) of pairs of groups; none: no variance.
double grouping_variance(double n, double b, double m, double trace, const std::vector<double>& across);

/// A number that does not exist: too few examples, or gradients that are not finite.
Estimate no_estimate();
NoiseEstimate no_noise_estimate();

/// The products of the examples' gradients, from a pass for the norms and one for the products with their mean.
ExampleProducts example_products(const at::Tensor& squared_norms, const at::Tensor& along_mean,
                                 double mean_square);
std::vector<double> to_doubles(const at::Tensor& numbers);

}  // namespace basin
