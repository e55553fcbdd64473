// defines: EigenSolverOptions, eigen_quantity() and what else the eigenvalue probes share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hessian/eigenpairs.h"
#include "probes/common.h"

namespace basin {

/// The solver options of the eigenvalue probes.
struct EigenSolverOptions {
  int64_t count = 1;
  double tolerance = 1e-3;  // see hessian/eigenpairs.h
  std::string stop = "residual";
  int64_t max_krylov = 0;
  int64_t max_restarts = 10;
};
void bind_solver_options(OptionTable& table, EigenSolverOptions& options);
/// With the context's seed and state file.
TopEigenOptions solver_options(const EigenSolverOptions& options, int64_t smallest,
                               const ProbeContext& context);

/// Values with a status and an error each, the residual or, where that decided, the bound on the eigenvalue;
/// `expected` NaNs where there are no pairs.
Quantity eigen_quantity(const QuantityNaming& naming, const std::vector<Eigenpair>& pairs, int64_t expected,
                        const EigenSolverOptions& options);

/// `factor` times the first entry of `lambda`, with its status.
Quantity scaled_first(const QuantityNaming& naming, const Quantity& lambda, double factor);

/// krylov, restarts, relative residuals and value bounds of both ends, tolerance and what it is of, solver's
/// method and asymmetry.
void record_solver(const TopEigenResult& found, const EigenSolverOptions& options, ProbeResult& result);

/// Sets the probe's status and message from its quantities.
void conclude_eigen(const TopEigenResult& found, double tolerance, ProbeResult& result);

}  // namespace basin
