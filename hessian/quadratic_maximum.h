// defines: maximise_quadratic(), the largest d'Ad in a convex set by Frank-Wolfe steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "hessian/linear_operator.h"

namespace basin {

struct QuadraticMaximum {
  double value = 0;      // d'Ad where the search ended
  double gap = 0;        // 2 max_s (s - d)'Ad over the set: 0 where d is stationary
  int64_t products = 0;  // with A
  bool stationary = false, nonfinite = false;
};

struct QuadraticSearch {
  int64_t iterations = 30;  // products after the first at most
  double tolerance = 1e-2;  // stationary where gap <= tolerance |value|
};

/// max d'Ad over a convex set around 0, of which `farthest`(x) gives the point s with the largest x's. From farthest(start):
///   s = farthest(A d),  d <- d + gamma (s - d),  gamma in [0, 1] by exact search along the line
/// (Frank & Wolfe 1956). The value never falls. Where A is positive semidefinite every step is a whole one, gamma = 1, from one
/// extreme point to the next: for the Euclidean ball power iteration.
///
/// In general a hard problem (for the cube that of the largest cut), so the value is a lower bound of the maximum: a stationary
/// point, as a rule one of several. Cost: a product per iteration, and one. Memory: four vectors.
QuadraticMaximum maximise_quadratic(LinearOperator& a,
                                    const std::function<at::Tensor(const at::Tensor&)>& farthest,
                                    const at::Tensor& start, const QuadraticSearch& search);

}  // namespace basin
