// defines: norm_of, the Euclidean norm of a tensor summed in float64.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// No copy, one pass, one thread: the same whatever the number of threads. 0 for an empty tensor; NaN and
/// infinity come through.
double norm_of(const at::Tensor& x);

}  // namespace basin
