// defines: top_eigenpairs(), the largest and smallest eigenvalues of a LinearOperator with true residuals.
#pragma once

#include "hessian/eigenpairs.h"
#include "hessian/linear_operator.h"

namespace basin {

/// The `count` largest and `smallest` smallest algebraic eigenpairs of a symmetric operator by
/// options.solver: "lanczos" (hessian/lanczos.h), ours, or "spectra" (hessian/spectra_eigenpairs.h), the
/// reference that it is checked against. What counts as converged: ErrorLimits.
///
/// Cost: about 10-25 products for 1-2 large and one small eigenvalue of a network's Hessian at 1e-2 to 1e-3.
/// A residual says how near an eigenvalue is, not that none was missed.
TopEigenResult top_eigenpairs(LinearOperator& op, const TopEigenOptions& options);

}  // namespace basin
