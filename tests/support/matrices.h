// defines: dense_matrix() and diagonal_operator(), between operators and the matrices that they stand for; largest_corner().
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "hessian/linear_operator.h"

namespace basin::testing {

/// Assembled from products with unit vectors, in float64.
inline at::Tensor dense_matrix(LinearOperator& op) {
  std::vector<at::Tensor> columns;
  for (const at::Tensor& unit : at::eye(op.size(), at::kDouble).unbind()) columns.push_back(op.apply(unit));
  return at::stack(columns, 1);
}

/// The largest d'Ad over the 2^n corners d of the cube; where A is semidefinite no point of it has more.
inline double largest_corner(const at::Tensor& a) {
  const int64_t n = a.size(0);
  double largest = 0;
  for (int64_t corner = 0; corner < (1 << n); ++corner) {
    const at::Tensor d = at::empty({n}, at::kDouble);
    for (int64_t j = 0; j < n; ++j) d[j] = (corner >> j) & 1 ? 1.0 : -1.0;
    largest = std::max(largest, d.dot(a.mv(d)).item<double>());
  }
  return largest;
}

inline FunctionOperator diagonal_operator(const at::Tensor& d) {
  return FunctionOperator(d.numel(), d.scalar_type(), [d](const at::Tensor& x) { return d * x; });
}

}  // namespace basin::testing
