// defines: Eigenpair, TopEigenOptions, TopEigenResult and what counts as converged; shared by every solver.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace basin {

/// What a solver's basis may take where nobody says otherwise.
inline constexpr int64_t kBasisBytes = int64_t{512} << 20;

/// Asymmetry above which no pair counts as converged. Float32 products of a network's Hessian show 1e-6; more
/// comes of an operator that isn't symmetric, or of one so close to 0 that its products are the rounding of
/// larger terms.
inline constexpr double kMostAsymmetry = 1e-3;

struct TopEigenOptions {
  int64_t count = 1;        // largest algebraic eigenvalues wanted
  int64_t smallest = 1;     // smallest algebraic eigenvalues wanted; 0 for none
  double tolerance = 1e-3;  // of the error; see ErrorLimits
  /// What the tolerance is of: the pair's residual, or its value_bound, where the vector doesn't matter.
  /// Solvers but lanczos know residuals alone.
  bool stop_by_value = false;
  int64_t max_krylov = 0;          // most basis vectors held; 0: 120, or what fits kBasisBytes
  int64_t max_restarts = 10;       // of a full basis
  uint64_t seed = 0;               // of the start vector
  std::string solver = "lanczos";  // or "spectra", the reference
  /// For lanczos: a file in which a long run keeps its state and from which it goes on, and what it is the
  /// state of. Empty: none. Removed when the run ends.
  std::string state_path = {}, state_key = {};
  bool keeps_state = true;  // false: another rank writes and removes it, and this one goes on from the same
  double state_seconds = 300;  // between two writings
  bool search_copies = false;  // for lanczos: look again from a second start for missed multiplicities
};

struct Eigenpair {
  double value = 0;     // Rayleigh quotient of `vector`
  double residual = 0;  // |H v - value v| with |v| = 1: an eigenvalue lies within this distance of `value`
  double relative_residual = 0;  // residual / |value|
  /// min(residual, residual^2 / gap), the gap to the nearest other Ritz value less that one's residual: how
  /// far the eigenvalue is from `value` (Kato & Temple; Parlett, The Symmetric Eigenvalue Problem, section
  /// 11.7) where the solver has overlooked none in between. Not below rounding (ErrorLimits::noise). The residual where there is no
  /// other Ritz value.
  double value_bound = 0;
  bool converged = false;
  at::Tensor vector;  // unit length, of the operator's type and device
};

/// How a solver of eigenvalues ended; nonfinite: a product was not finite, and there are no pairs.
enum class SolverStatus { converged, not_converged, nonfinite };
const char* to_string(SolverStatus status);

struct TopEigenResult {
  SolverStatus status = SolverStatus::converged;
  std::vector<Eigenpair> largest;   // descending, min(count, n) of them
  std::vector<Eigenpair> smallest;  // ascending, min(smallest, n) of them
  int64_t products = 0;             // matrix-vector products in all
  int64_t krylov = 0;               // basis vectors when the last end was found
  int64_t restarts = 0;
  std::string method;  // "lanczos", "spectra-lanczos", "spectra-restarted" or "dense"
  /// Largest |v_i . A v_j - v_j . A v_i| over max|lambda|, of what is known of it at that step (the largest Ritz value and residual): rounding
  /// for a symmetric operator, of order 1 for another. One entry of A - A^T is at most as large as its norm. NaN where the solver doesn't look.
  double asymmetry = NAN;
};

/// A pair has converged when its error (residual or value_bound) <= tolerance |value|; for the small end,
/// whose values lie near zero compared with the others, when it is <= tolerance max(|value|, 0.1 max|lambda|). Below
/// 32 machine epsilons of max|lambda|, which is what rounding leaves of a residual, nothing is asked.
struct ErrorLimits {
  static constexpr double kSmallEndFloor = 0.1;  // of max|lambda|
  ErrorLimits(const TopEigenOptions& options, at::ScalarType type);
  double large(double value, double radius) const;
  double small(double value, double radius) const;
  double error(double residual, double value_bound) const { return by_value ? value_bound : residual; }
  double tolerance, noise;
  bool by_value;
};

/// Sets `converged` of each pair and the result's status, and sorts each end from the outside in.
void judge(TopEigenResult& result, const ErrorLimits& limits);

}  // namespace basin
