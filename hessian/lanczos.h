// defines: lanczos_eigenpairs(), our eigensolver: thick-restart Lanczos on the operator's device;
// KrylovSpace.
#pragma once

#include <Eigen/Core>

#include "hessian/eigenpairs.h"
#include "hessian/linear_operator.h"

namespace basin {

/// What a run leaves for others to use. `whole`: without a restart, so that the first row of
/// `vectors` is the start, `projected` its Lanczos matrix, and a quadrature may be read off it.
struct KrylovSpace {
  at::Tensor vectors, products;  // V [m, n] with orthonormal rows, W = A V
  Eigen::MatrixXd projected;     // V A V^T
  bool whole = false;
};

/// The outermost eigenpairs of a symmetric operator from one Krylov space (Lanczos with full
/// reorthogonalisation; thick restart after Wu & Simon, SIAM J. Matrix Anal. Appl. 22, 2000, when the basis
/// is full). Vectors stay on the operator's device in its type, the projected matrix on the host in float64;
/// per step one column of it, at most 120 numbers, crosses over.
///
/// A product A v_i is kept with each v_i, so that stopping is decided on true residuals |A x - theta x| and
/// no product is spent on verifying. The first step at which every wanted pair meets its limit ends the run.
///
/// The start is random. From the last checkpoint's vectors, any direction that has overtaken them is so weak that they converge first,
/// and it is missed (docs/curvature.md).
///
/// Exact multiplicities: a Krylov space shows one vector of every eigenspace. At a breakdown, a space that
/// the operator maps into itself, a new random start is made for each further copy wanted. Without a
/// breakdown a copy can be missed, unless options.search_copies gives a second random start, outside the
/// first space, as many products again.
///
/// With options.state_path a run that was killed or interrupted goes on from the last state kept, with the
/// same bits. A basis that several ranks divide (KrylovBasis) keeps no state: the run begins again.
///
/// The operator's symmetry is watched at every step, without a product (TopEigenResult::asymmetry); above kMostAsymmetry the
/// run ends, not converged, with the asymmetry as residual where that is larger.
///
/// Cost: 5-7 products for the largest eigenvalue of a trained network at 1e-3, 13-17 for five, and per step
/// 4 m n flops and 2 n numbers of memory at basis size m. n <= 32: n products, all eigenvalues.
TopEigenResult lanczos_eigenpairs(LinearOperator& op, const TopEigenOptions& options,
                                  KrylovSpace* space = nullptr);

}  // namespace basin
