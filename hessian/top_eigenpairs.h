// defines: top_eigenpairs(), the largest and smallest eigenvalues of a LinearOperator by Spectra, with true
// residuals.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hessian/linear_operator.h"

namespace basin {

struct TopEigenOptions {
  int64_t count = 1;          // largest algebraic eigenvalues wanted
  int64_t smallest = 1;       // smallest algebraic eigenvalues wanted; 0 for none
  double tolerance = 1e-3;    // of the residual; see top_eigenpairs
  int64_t max_krylov = 0;     // most basis vectors held; 0: 120, or what fits 512 MiB
  int64_t max_restarts = 10;  // of an end that is not there when the basis is full
  uint64_t seed = 0;          // of the start vector
};

struct Eigenpair {
  double value = 0;     // Rayleigh quotient of `vector`
  double residual = 0;  // |H v - value v| with |v| = 1: an eigenvalue lies within this distance of `value`
  double relative_residual = 0;  // residual / |value|
  bool converged = false;
  at::Tensor vector;  // unit length, of the operator's type and device
};

struct TopEigenResult {
  std::string status = "converged";  // converged | not_converged | nonfinite (then without pairs)
  std::vector<Eigenpair> largest;    // descending, min(count, n) of them
  std::vector<Eigenpair> smallest;   // ascending, min(smallest, n) of them
  int64_t products = 0;              // matrix-vector products in all, those of the residuals included
  int64_t krylov = 0;                // basis vectors when the last end was found
  int64_t restarts = 0;
  std::string method;  // "spectra-lanczos", "spectra-restarted" or "dense"
};

/// The `count` largest and `smallest` smallest algebraic eigenpairs of a symmetric operator.
///
/// Lanczos with full reorthogonalisation (Spectra's factorisation, grown a vector at a time) serves both ends
/// from one Krylov space and stops at the first step where every pair wanted is there, which a restarted
/// solver cannot do before its basis is full. An end that is not there when the basis is full goes to
/// Spectra's implicitly restarted solver, started from its best Ritz vectors (Sorensen, SIAM J. Matrix Anal.
/// 13, 1992). Values are Rayleigh quotients and residuals those of one more product a vector, never the
/// recurrence's own estimate. Up to max(32, 2 (count + smallest) + 4)
/// unknowns: dense, by n products.
///
/// A pair has converged when residual <= tolerance |value|; for the small end, whose values lie near zero
/// beside the others, when residual <= tolerance max(|value|, 0.1 max|lambda|). Below 32 machine epsilons of
/// max|lambda| nothing is asked. Exact multiplicities show only where the Krylov space breaks down (then
/// `count` further starts are made) or n is small.
///
/// Cost: about 10-25 products for 1-2 large and one small eigenvalue of a network's Hessian at 1e-2 to 1e-3;
/// n doubles a basis vector on the host. A residual says how near an eigenvalue is, not that none was missed.
TopEigenResult top_eigenpairs(LinearOperator& op, const TopEigenOptions& options);

}  // namespace basin
