// defines: the probe top_eigenvalues.
#pragma once

#include <memory>
#include <string>

#include "probes/eigen_quantity.h"

namespace basin {

struct TopEigenvaluesOptions : EigenSolverOptions {
  TopEigenvaluesOptions() { count = 2; }  // with one below, which tells an outlier from the edge of the bulk
  int64_t smallest = 1;
  std::string solver = "lanczos";
};
void bind_options(OptionTable& table, TopEigenvaluesOptions& options);

/// The `count` largest algebraic eigenvalues of the Hessian of L, the `smallest` smallest ones, and
/// lambda_1 |w|^2, which does not change when a scale-invariant network's weights are scaled (L(c w) = L(w)
/// implies H(c w) = H(w) / c^2). Definitions and cost: docs/probes.md#hessian-eigenvalues; solver: hessian/top_eigenpairs.h.
std::unique_ptr<Probe> make_top_eigenvalues(const TopEigenvaluesOptions& options);

}  // namespace basin
