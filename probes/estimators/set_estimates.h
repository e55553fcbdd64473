// defines: mean_of_set() and share_of_set(): numbers of a set of examples, from some of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/math/ratio_estimate.h"

namespace basin {

/// The mean over a set of N numbers, from `values` (float64), n of them drawn without replacement, so without
/// error for n = N (Cochran, Sampling Techniques, 1977, equation 2.20). Where each is itself an unbiased
/// estimate by draws of its own, with variances v_i:
///   error^2 = (1 - n/N) s^2 / n + n/N mean(v_i) / n,   s^2 the variance of the values.
/// 95 % interval by Student's t for n - 1 degrees of freedom; NaN for n = 1 < N.
Estimate mean_of_set(const at::Tensor& values, int64_t set_numbers, const at::Tensor& variances = {});

/// The share of a set of N with some property, of which `count` of n drawn without replacement have it. 95 %
/// interval by Wilson's score for n (N - 1) / (N - n) draws, within what the n leave possible; it holds for a
/// count of 0 too. The error is its width over 2 x 1.96.
Estimate share_of_set(int64_t count, int64_t numbers, int64_t set_numbers);

}  // namespace basin
