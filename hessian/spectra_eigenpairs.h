// defines: spectra_eigenpairs(), the reference eigensolver: Spectra, with true residuals.
#pragma once

#include "hessian/eigenpairs.h"
#include "hessian/linear_operator.h"

namespace basin {

/// Lanczos with full reorthogonalisation (Spectra's factorisation, grown a vector at a time) serves both ends
/// from one Krylov space and stops at the first step where every pair wanted is there, which a restarted
/// solver cannot do before its basis is full. An end that is not there when the basis is full goes to
/// Spectra's implicitly restarted solver, started from its best Ritz vectors (Sorensen, SIAM J. Matrix Anal.
/// 13, 1992). Values are Rayleigh quotients and residuals those of one more product per vector, never the
/// recurrence's own estimate. Up to max(32, 2 (count + smallest) + 4) unknowns: dense, by n products.
///
/// Exact multiplicities show only where the Krylov space breaks down (then `count` further starts are made)
/// or n is small.
///
/// Cost: as lanczos_eigenpairs() and one product per pair; n doubles per basis vector on the host, and each
/// product takes a round trip there.
TopEigenResult spectra_eigenpairs(LinearOperator& op, const TopEigenOptions& options);

}  // namespace basin
