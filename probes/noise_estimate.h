// defines: estimate_noise(), tr Sigma and |G|^2 with jackknife covariances from group gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

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

struct Estimate {
  double value = 0, error = 0, low = 0,
         high = 0;  // standard error and 95 % interval; NaN where there is none
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

/// Fieller's 95 % set for a / b with variances vaa, vbb, covariance vab and quantile t, cut to [0, inf): both
/// are averages of squares. An interval where b is resolved and positive, else [root, inf) or [0, inf).
Estimate fieller_ratio(double a, double b, double vaa, double vbb, double vab, double t);

}  // namespace basin
