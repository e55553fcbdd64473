// defines: dense_matrix() and diagonal_operator(), between operators and the matrices that they stand for.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hessian/linear_operator.h"

namespace basin::testing {

/// Assembled from products with unit vectors, in float64.
inline at::Tensor dense_matrix(LinearOperator& op) {
  std::vector<at::Tensor> columns;
  for (const at::Tensor& unit : at::eye(op.size(), at::kDouble).unbind()) columns.push_back(op.apply(unit));
  return at::stack(columns, 1);
}

inline FunctionOperator diagonal_operator(const at::Tensor& d) {
  return FunctionOperator(d.numel(), d.scalar_type(), [d](const at::Tensor& x) { return d * x; });
}

}  // namespace basin::testing
