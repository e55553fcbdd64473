// defines: random_gradient_groups(), mean gradients of examples split at random.
#pragma once

#include <cstdint>

#include "hessian/problem.h"
#include "probes/estimators/noise_estimate.h"

namespace basin {

/// The examples of a problem in groups of `group_size` in an order drawn from `seed`. Each call of group() computes a gradient.
/// `problem` outlives it.
GradientGroups random_gradient_groups(Problem& problem, int64_t group_size, uint64_t seed);

}  // namespace basin
