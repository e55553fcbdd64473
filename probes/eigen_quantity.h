// defines: EigenSolverOptions, eigen_quantity() and their like, what every probe of eigenvalues shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hessian/eigenpairs.h"
#include "probes/common.h"

namespace basin {

/// What the probes of eigenvalues let a user choose of the solver.
struct EigenSolverOptions {
  int64_t count = 1;
  double tolerance = 1e-3;  // of the residual, see hessian/eigenpairs.h
  int64_t max_krylov = 0;
  int64_t max_restarts = 10;
};
void bind_solver_options(OptionTable& table, EigenSolverOptions& options);
/// With the context's seed and state file.
TopEigenOptions solver_options(const EigenSolverOptions& options, int64_t smallest,
                               const ProbeContext& context);

/// Values with their residuals and a status each; `expected` NaNs where there are no pairs.
Quantity eigen_quantity(const QuantityNaming& naming, const std::vector<Eigenpair>& pairs, int64_t expected);

/// `factor` times the first entry of `lambda`, with its status.
Quantity scaled_first(const QuantityNaming& naming, const Quantity& lambda, double factor);

/// hvps, krylov, restarts, relative residuals of both ends, tolerance, solver's method and asymmetry.
void record_solver(const TopEigenResult& found, double tolerance, ProbeResult& result);

/// Sets status and message of the whole from its quantities.
void conclude_eigen(const TopEigenResult& found, double tolerance, ProbeResult& result);

}  // namespace basin
