#include "hessian/top_eigenpairs.h"

#include "core/error.h"
#include "hessian/lanczos.h"
#include "hessian/spectra_eigenpairs.h"

namespace basin {

TopEigenResult top_eigenpairs(LinearOperator& op, const TopEigenOptions& options) {
  if (options.count < 0 || options.smallest < 0 || options.count + options.smallest < 1 ||
      options.tolerance <= 0) {
    throw ConfigError(
        "top_eigenpairs needs count >= 0, smallest >= 0, one of them positive, and tolerance > 0");
  }
  TopEigenResult result;
  if (options.solver == "lanczos") {
    result = lanczos_eigenpairs(op, options);
  } else if (options.solver == "spectra") {
    result = spectra_eigenpairs(op, options);
  } else {
    throw ConfigError(fmt::format("solver = \"{}\": expected lanczos or spectra", options.solver));
  }
  if (result.status == SolverStatus::nonfinite) {
    result.largest.clear();
    result.smallest.clear();
  }
  return result;
}

}  // namespace basin
