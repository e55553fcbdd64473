#include "probes/preconditioned_curvature.h"

#include <ATen/ATen.h>

#include "hessian/lanczos.h"
#include "hessian/operators.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"
#include "probes/registry.h"
#include "probes/run_preconditioner.h"

namespace basin {
namespace {

class PreconditionedCurvature final : public Probe {
 public:
  explicit PreconditionedCurvature(const PreconditionedCurvatureOptions& options)
      : Probe("preconditioned_curvature"), options_(options) {}

  ProbeCost expected_cost() const override {
    return {2, 4 - 2 * std::log10(options_.tolerance) + 3 * (options_.count - 1.0)};
  }
  std::vector<Answer> needs() const override { return {Answer::gradient, Answer::product}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const std::unique_ptr<CurvatureProducts> hessian = context.problem.curvature(Curvature::hessian);
    const TopEigenResult found = solve(context, *hessian);
    result.quantities = {eigen_quantity({"lambda", "largest eigenvalues of the preconditioned Hessian",
                                         "preconditioned-lambda", "1/learning_rate"},
                                        found.largest, std::min(options_.count, hessian->size()), options_)};
    result.quantities.front().is_vector = true;
    result.quantities.push_back(scaled_first(
        {"rate_lambda_1", "learning rate times the largest of them", "preconditioned-rate-lambda", "1"},
        result.quantities.front(), context.learning_rate));
    const double limit = context.optimizer ? context.optimizer->stability_limit() : kNaN;
    const double frozen = context.optimizer ? context.optimizer->frozen_stability_limit() : kNaN;
    result.attributes.insert(result.attributes.end(), {{"learning_rate", context.learning_rate},
                                                       {"stability_limit", limit},
                                                       {"frozen_stability_limit", frozen},
                                                       {"held_weights", held_},
                                                       {"hvps", found.products}});
    record_solver(found, options_, result);
    conclude_eigen(found, options_.tolerance, result);
    if (!unresolved_.empty()) leave_unresolved(result);
  }

  /// Without pairs where there is no preconditioner; unresolved_ then says why.
  TopEigenResult solve(const ProbeContext& context, CurvatureProducts& hessian) {
    const RunPreconditioner p(context, context.problem.gradient());
    if (!p.exists()) return nothing(p.why_missing());
    held_ = p.held();
    RotatedOperator rotated(
        hessian, [&](const at::Tensor& x) { return p.rotated(x); },
        [&](const at::Tensor& x) { return p.rotated_back(x); });
    PreconditionedOperator preconditioned(rotated, p.diagonal());
    return lanczos_eigenpairs(preconditioned, solver_options(options_, /*smallest=*/0, context));
  }

  TopEigenResult nothing(const std::string& reason) {
    unresolved_ = reason;
    TopEigenResult none;
    none.status = SolverStatus::nonfinite;
    none.method = "none";
    return none;
  }

  void leave_unresolved(ProbeResult& result) const {
    for (Quantity& quantity : result.quantities) {
      quantity.status = ProbeStatus::not_resolved;
      quantity.entry_status.clear();
    }
    result.status = ProbeStatus::not_resolved;
    result.message = unresolved_;
  }

  PreconditionedCurvatureOptions options_;
  std::string unresolved_;
  int64_t held_ = 0;
};

}  // namespace

void bind_options(OptionTable& table, PreconditionedCurvatureOptions& options) {
  bind_solver_options(table, options);
}

std::unique_ptr<Probe> make_preconditioned_curvature(const PreconditionedCurvatureOptions& options) {
  return std::make_unique<PreconditionedCurvature>(options);
}

ProbeEntry preconditioned_curvature_entry() {
  return probe_entry<PreconditionedCurvatureOptions, make_preconditioned_curvature>({
      .name = "preconditioned_curvature",
      .label = "preconditioned curvature",
      .help = "largest eigenvalues of the Hessian as the optimiser sees it",
      .version = 3,
      .definitions = {"preconditioned-lambda", "preconditioned-rate-lambda"},
      .entries = {"lambda_#", "rate_lambda_1"},
      .headlines = {{"rate_lambda_1", "", "η λ₁(P⁻¹H)"}},
  });
}

}  // namespace basin
