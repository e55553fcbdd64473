#include "probes/eigen_quantity.h"

#include <fmt/format.h>

#include "probes/common.h"

namespace basin {

void bind_solver_options(OptionTable& table, EigenSolverOptions& options) {
  table.add("count", options.count, between(1, 1000), "number of largest eigenvalues");
  table.add("tolerance", options.tolerance, between(1e-12, 0.5),
            "relative error at which an eigenpair is accepted");
  table.add("stop", options.stop, one_of({"residual", "eigenvalue"}),
            "error that tolerance bounds: residual: the eigenpair's; eigenvalue: the eigenvalue's alone, "
            "which takes fewer products");
  table.add("max_krylov", options.max_krylov, at_least(0),
            "most Krylov vectors held; 0: 120, or what fits 512 MiB");
  table.add("max_restarts", options.max_restarts, at_least(0),
            "most restarts, each once the Krylov basis is full");
}

TopEigenOptions solver_options(const EigenSolverOptions& options, int64_t smallest,
                               const ProbeContext& context) {
  return {.count = options.count,
          .smallest = smallest,
          .tolerance = options.tolerance,
          .stop_by_value = options.stop == "eigenvalue",
          .max_krylov = options.max_krylov,
          .max_restarts = options.max_restarts,
          .seed = context.seed,
          .state_path = context.state_path,
          .state_key = context.state_key,
          .keeps_state = context.keeps_state};
}

Quantity eigen_quantity(const QuantityNaming& naming, const std::vector<Eigenpair>& pairs, int64_t expected,
                        const EigenSolverOptions& options) {
  const bool by_value = options.stop == "eigenvalue";
  Quantity q = named(naming, by_value ? UncertaintyKind::eigenvalue_bound : UncertaintyKind::residual);
  for (const Eigenpair& pair : pairs) {
    q.value.push_back(pair.value);
    q.uncertainty.push_back(by_value ? pair.value_bound : pair.residual);
    q.entry_status.push_back(pair.converged ? ProbeStatus::ok : ProbeStatus::not_converged);
  }
  if (pairs.empty()) {
    q.value.assign(expected, kNaN);
    q.uncertainty.assign(expected, kNaN);
    q.entry_status.assign(expected, ProbeStatus::nonfinite);
  }
  q.status = gravest_status(q.entry_status);
  return q;
}

Quantity scaled_first(const QuantityNaming& naming, const Quantity& lambda, double factor) {
  Quantity q = named(naming, lambda.uncertainty_kind);
  q.status = lambda.entry_status.front();  // a lambda_2 that has not converged says nothing of lambda_1
  q.value = {lambda.value.front() * factor};
  q.uncertainty = {lambda.uncertainty.front() * factor};
  return q;
}

void record_solver(const TopEigenResult& found, const EigenSolverOptions& options, ProbeResult& result) {
  std::vector<double> relative, bounds;
  for (const auto* end : {&found.largest, &found.smallest}) {
    for (const Eigenpair& pair : *end) {
      relative.push_back(pair.relative_residual);
      bounds.push_back(pair.value_bound);
    }
  }
  result.attributes.insert(result.attributes.end(), {{"method", found.method},
                                                     {"tolerance", options.tolerance},
                                                     {"stop", options.stop},
                                                     {"krylov", found.krylov},
                                                     {"restarts", found.restarts},
                                                     {"relative_residuals", relative},
                                                     {"value_bounds", bounds},
                                                     {"asymmetry", found.asymmetry}});
}

void conclude_eigen(const TopEigenResult& found, double tolerance, ProbeResult& result) {
  result.status = gravest_status(result.quantities);
  if (result.status == ProbeStatus::nonfinite) result.message = "a Hessian-vector product was not finite";
  if (result.status == ProbeStatus::not_converged) {
    result.message =
        fmt::format("an error is above the tolerance {} after {} products", tolerance, found.products);
  }
  if (result.status == ProbeStatus::not_converged && found.asymmetry > kMostAsymmetry) {
    result.message = fmt::format(
        "products are not symmetric, by {:.2g} of the largest eigenvalue: where H is nearly 0, float64 may "
        "help",
        found.asymmetry);
  }
  if (result.status == ProbeStatus::not_resolved && result.message.empty())
    result.message = "too few samples for an error";
}

}  // namespace basin
