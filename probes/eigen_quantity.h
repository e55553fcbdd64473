// defines: eigen_quantity() and its like, what every probe of eigenvalues shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hessian/eigenpairs.h"
#include "probes/probe.h"

namespace basin {

struct EigenNaming {
  std::string name, long_name, definition, units;
};

/// Values with their residuals and a status each; `expected` NaNs where there are no pairs.
Quantity eigen_quantity(const EigenNaming& naming, const std::vector<Eigenpair>& pairs, int64_t expected);

/// `factor` times the first entry of `lambda`, with its status.
Quantity scaled_first(const EigenNaming& naming, const Quantity& lambda, double factor);

/// hvps, krylov, restarts, relative residuals of both ends, tolerance, solver's method and asymmetry.
void record_solver(const TopEigenResult& found, double tolerance, ProbeResult& result);

/// Sets status and message of the whole from its quantities.
void conclude_eigen(const TopEigenResult& found, double tolerance, ProbeResult& result);

}  // namespace basin
