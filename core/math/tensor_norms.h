// defines: norms, distances and inner products of tensors, summed in float64.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace basin {

/// sum_j a_j^2 in float64. On a CPU no copy, one pass, one thread: the same whatever the number of threads, and cheap
/// enough for every update. 0 for an empty tensor; NaN and infinity come through.
double squared_norm(const at::Tensor& a);
/// The sum over all tensors, as if they were one.
double squared_norm(const std::vector<at::Tensor>& tensors);
/// Its root, the Euclidean norm.
double norm_of(const at::Tensor& a);
/// sum_j (a_j - b_j)^2, likewise; a and b have the same type, and the same strides where one is a clone of the other.
double squared_distance(const at::Tensor& a, const at::Tensor& b);

/// sum_j a_j b_j, likewise.
double inner_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace basin
