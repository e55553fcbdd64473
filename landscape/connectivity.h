// defines: highest_excess(), excess_over_examples() and mean_along(), what is read off a path between
// solutions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/math/statistics.h"

namespace basin {

/// How far v, known at rising t from 0 to 1, stands above the chord of its ends:
///
///   e(t) = v(t) - [(1 - t) v(0) + t v(1)],   barrier = max_t e(t) >= 0
///
/// (linear mode connectivity: Frankle et al., ICML 2020, section 2, with the chord of Entezari et al., ICLR
/// 2022, definition 2.1, in place of the mean of the ends). The maximum here is over the inner points alone,
/// where it may be negative: at the ends e is 0 by definition, and says nothing.
///
/// With noisy values the maximum is biased upwards, the more so the more points there are and the flatter the
/// path is; a maximum between two points is missed, which biases downwards.
struct Excess {
  int64_t point =
      -1;  // where e is largest; of several the first. -1: a value is not finite, or no inner point
  double value = std::numeric_limits<double>::quiet_NaN();
};
Excess highest_excess(const std::vector<double>& t, const std::vector<double>& values);

/// e(t) as a mean over examples with its standard error: paired, for the same examples are looked at in all
/// three places, so what makes an example hard everywhere cancels. v of each example at t and at the ends. It
/// holds for a t that was chosen beforehand; at the t of the maximum it leaves the choice out.
SampleMean excess_over_examples(double t, const at::Tensor& at_t, const at::Tensor& at_start,
                                const at::Tensor& at_end);

/// The mean of v over the length of a path, integral v |dw| / integral |dw|, by trapezia between its points;
/// steps: |w_i - w_{i-1}|, one fewer than values. What a uniform t would give instead depends on how the
/// path is parametrised. NaN for a path without length.
double mean_along(const std::vector<double>& values, const std::vector<double>& steps);

}  // namespace basin
