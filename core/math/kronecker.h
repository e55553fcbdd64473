// defines: KroneckerFactors, a matrix along each dimension of a tensor; their product with it, Gram and eigenvector matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace basin {

/// M_1, ..., M_k of a tensor with k dimensions, each square with the size of its dimension. An undefined one is the identity, and
/// so are all where the list is empty.
using KroneckerFactors = std::vector<at::Tensor>;

/// (M_1 x ... x M_k) x, shaped as x: M_1 X M_2' of a matrix. Cost: numel times the sum of the sizes.
at::Tensor kronecker_product(const KroneckerFactors& factors, at::Tensor x);
/// The same with M_1', ..., M_k'.
at::Tensor kronecker_transposed_product(const KroneckerFactors& factors, at::Tensor x);

/// X X', X [n, numel / n] the slices of x along a dimension of size n as rows.
at::Tensor gram_along(const at::Tensor& x, int64_t dimension);
/// Its diagonal alone, [n].
at::Tensor squares_along(const at::Tensor& x, int64_t dimension);

/// Eigenvalues of a symmetric matrix, largest first, and eigenvectors as columns, in float64. NaN where the matrix isn't finite:
/// LAPACK would throw, and weights that diverged are no error.
std::pair<at::Tensor, at::Tensor> symmetric_eigen(const at::Tensor& matrix);

}  // namespace basin
