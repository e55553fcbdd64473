// defines: TopSpace and overlap_of(), how far the leading eigenspaces of two matrices agree.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hessian/eigenpairs.h"

namespace basin {

/// The span of the `dimension` leading of the eigenpairs of a matrix of `size`. A unit vector x with
/// |A x - theta x| = r has at most r / (theta - lambda) outside of the leading eigenspace, lambda being the largest
/// eigenvalue there (Davis & Kahan, SIAM J. Numer. Anal. 7, 1970); lambda is at most the next pair's value plus its
/// residual where the solver has overlooked none.
struct TopSpace {
  /// `largest`: descending, one pair more than `dimension` where the matrix has one.
  TopSpace(const std::vector<Eigenpair>& largest, int64_t dimension, int64_t size);
  at::Tensor vectors;  // orthonormal rows
  /// Bound of |sin Theta|_F between span and eigenspace; infinite where residuals leave no gap below it.
  double angle = 0;
  bool converged = true;
};

/// |U V'|_F^2 / k, U and V the vectors of the two: the mean squared cosine of the principal angles. Random
/// spaces have k / size.
struct Overlap {
  double value = 0;
  double bound = 0;  // how far that of the eigenspaces may be from it
};
Overlap overlap_of(const TopSpace& a, const TopSpace& b);

}  // namespace basin
