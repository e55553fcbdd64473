#include "probes/preconditioned_curvature.h"

#include <ATen/ATen.h>

#include <chrono>

#include "hessian/curvature_operator.h"
#include "hessian/lanczos.h"
#include "hessian/operators.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"

namespace basin {
namespace {

class PreconditionedCurvature final : public Probe {
 public:
  explicit PreconditionedCurvature(const PreconditionedCurvatureOptions& options) : options_(options) {}

  ProbeResult run(const ProbeContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    ProbeResult result = start_result("preconditioned_curvature", context);
    CurvatureOperator hessian(context.objective, Curvature::hessian);
    const TopEigenResult found = measure(context, hessian);
    result.quantities = {eigen_quantity({"lambda", "largest eigenvalues of the preconditioned Hessian",
                                         "preconditioned-lambda", "1/learning_rate"},
                                        found.largest, std::min(options_.count, hessian.size()))};
    result.quantities.front().is_vector = true;
    result.quantities.push_back(scaled_first(
        {"rate_lambda_1", "learning rate times the largest of them", "preconditioned-rate-lambda", "1"},
        result.quantities.front(), context.learning_rate));
    const double limit = context.optimizer ? context.optimizer->stability_limit() : kNaN;
    result.attributes.insert(
        result.attributes.end(),
        {{"learning_rate", context.learning_rate}, {"stability_limit", limit}, {"hvps", found.products}});
    record_solver(found, options_.tolerance, result);
    conclude_eigen(found, options_.tolerance, result);
    if (!unresolved_.empty()) leave_unresolved(result);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

  ProbeCost expected_cost() const override {
    return {1, 4 - 2 * std::log10(options_.tolerance) + 3 * (options_.count - 1.0)};
  }

 private:
  /// Without pairs where there is no preconditioner; unresolved_ then says why.
  TopEigenResult measure(const ProbeContext& context, CurvatureOperator& hessian) {
    if (!context.optimizer) return nothing("the checkpoint has no optimiser");
    const ParameterVector& vector = context.objective.parameters();
    const at::Tensor gradient = context.objective.gradient();
    if (!at::isfinite(gradient).all().item<bool>()) return nothing("");
    std::vector<at::Tensor> flat;
    for (const at::Tensor& p : context.optimizer->preconditioner(vector.unflatten(gradient)))
      flat.push_back(p.to(at::kDouble).contiguous().flatten());
    const at::Tensor p = at::cat(flat);
    if (!at::isfinite(p).all().item<bool>()) return nothing("the optimiser's state holds no update yet");
    if (!(p > 0).all().item<bool>()) return nothing("the preconditioner is 0 for some weights");
    PreconditionedOperator preconditioned(hessian, p);
    return lanczos_eigenpairs(preconditioned, {.count = options_.count,
                                               .smallest = 0,
                                               .tolerance = options_.tolerance,
                                               .max_krylov = options_.max_krylov,
                                               .max_restarts = options_.max_restarts,
                                               .seed = context.seed,
                                               .state_path = context.state_path,
                                               .state_key = context.state_key});
  }

  TopEigenResult nothing(const std::string& reason) {
    unresolved_ = reason;
    TopEigenResult none;
    none.status = "nonfinite";
    none.method = "none";
    return none;
  }

  void leave_unresolved(ProbeResult& result) const {
    for (Quantity& quantity : result.quantities) {
      quantity.status = "not_resolved";
      quantity.entry_status.clear();
    }
    result.status = "not_resolved";
    result.message = unresolved_;
  }

  PreconditionedCurvatureOptions options_;
  std::string unresolved_;
};

}  // namespace

void bind_options(OptionTable& table, PreconditionedCurvatureOptions& options) {
  table.add("count", options.count, between(1, 1000), "largest eigenvalues wanted");
  table.add("tolerance", options.tolerance, between(1e-12, 0.5),
            "relative residual at which an eigenpair is accepted");
  table.add("max_krylov", options.max_krylov, at_least(0),
            "most Krylov vectors held; 0: 120, or what fits 512 MiB");
  table.add("max_restarts", options.max_restarts, at_least(0), "restarts of a full basis");
}

std::unique_ptr<Probe> make_preconditioned_curvature(const PreconditionedCurvatureOptions& options) {
  return std::make_unique<PreconditionedCurvature>(options);
}

}  // namespace basin
