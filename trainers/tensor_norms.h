// defines: squared norms and distances of parameters, summed in float64.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// sum_j a_j^2.
double squared_norm(const at::Tensor& a);
/// sum_j (a_j - b_j)^2. On CPU one pass over the memory without a temporary, so cheap enough for every update; a and b
/// have the same type, and the same strides where one is a clone of the other.
double squared_distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace basin
