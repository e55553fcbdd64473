// defines: as_matrix(), a parameter as methods that act on matrices see it.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// A tensor of two or more dimensions by its first: a filter [out, in, kernel, kernel] as [out, in kernel kernel].
inline at::Tensor as_matrix(const at::Tensor& tensor) { return tensor.reshape({tensor.size(0), -1}); }

}  // namespace basin
