// defines: Eigenpair, TopEigenOptions, TopEigenResult and what counts as converged; shared by every solver.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

struct TopEigenOptions {
  int64_t count = 1;                   // largest algebraic eigenvalues wanted
  int64_t smallest = 1;                // smallest algebraic eigenvalues wanted; 0 for none
  double tolerance = 1e-3;             // of the residual; see ResidualLimits
  int64_t max_krylov = 0;              // most basis vectors held; 0: 120, or what fits 512 MiB
  int64_t max_restarts = 10;           // of a full basis
  uint64_t seed = 0;                   // of the start vector
  std::string solver = "spectra";  // or "lanczos"; see top_eigenpairs()
  std::vector<at::Tensor> start = {};  // vectors near the wanted ones, for lanczos; empty: random
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
  int64_t products = 0;              // matrix-vector products in all
  int64_t krylov = 0;                // basis vectors when the last end was found
  int64_t restarts = 0;
  std::string method;  // "lanczos", "spectra-lanczos", "spectra-restarted" or "dense"
};

/// A pair has converged when residual <= tolerance |value|; for the small end, whose values lie near zero
/// beside the others, when residual <= tolerance max(|value|, 0.1 max|lambda|). Below 32 machine epsilons of
/// max|lambda|, which is what rounding leaves of a residual, nothing is asked.
struct ResidualLimits {
  static constexpr double kSmallEndFloor = 0.1;  // of max|lambda|
  ResidualLimits(double tolerance, at::ScalarType type);
  double large(double value, double radius) const;
  double small(double value, double radius) const;
  double tolerance, noise;
};

/// Sets `converged` of each pair and the result's status, and sorts each end from the outside in.
void judge(TopEigenResult& result, const ResidualLimits& limits);

}  // namespace basin
