#include "probes/top_eigenvalues.h"

#include <ATen/ATen.h>

#include <chrono>

#include "hessian/curvature_operator.h"
#include "hessian/top_eigenpairs.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"

namespace basin {
namespace {

class TopEigenvalues final : public Probe {
 public:
  explicit TopEigenvalues(const TopEigenvaluesOptions& options) : options_(options) {}

  ProbeResult run(const ProbeContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    ProbeResult result = start_result("top_eigenvalues", context);
    CurvatureOperator hessian(context.objective, Curvature::hessian);
    const TopEigenResult found = top_eigenpairs(hessian, {.count = options_.count,
                                                          .smallest = 1,
                                                          .tolerance = options_.tolerance,
                                                          .max_krylov = options_.max_krylov,
                                                          .max_restarts = options_.max_restarts,
                                                          .seed = context.seed,
                                                          .solver = options_.solver,
                                                          .start = warm_start(context),
                                                          .state_path = context.state_path,
                                                          .state_key = context.state_key});
    const int64_t expected = std::min(options_.count, hessian.size());
    const double norm = context.objective.parameters().gather().to(at::kDouble).norm().item<double>();
    result.quantities = {
        eigen_quantity({"lambda", "largest Hessian eigenvalues", "hessian-lambda", "loss/weight^2"},
                       found.largest, expected),
        eigen_quantity({"lambda_min", "smallest Hessian eigenvalue", "hessian-lambda-min", "loss/weight^2"},
                       found.smallest, 1)};
    result.quantities.front().is_vector = true;
    result.quantities.push_back(
        scaled_first({"lambda_1_w2", "largest Hessian eigenvalue times squared weight norm",
                      "hessian-lambda-norm", "loss"},
                     result.quantities.front(), norm * norm));
    result.attributes.insert(result.attributes.end(),
                             {{"solver", options_.solver}, {"hvps", found.products}});
    record_solver(found, options_.tolerance, result);
    conclude_eigen(found, options_.tolerance, result);
    result.next_start = sum_of_vectors(found);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

  ProbeCost expected_cost() const override {
    // Counted on trained networks: 16-22, 25-33 and 29-43 products at tolerances 0.05, 0.01 and 0.001 for one
    // or two values, most of them spent on the smallest one.
    const auto further = static_cast<double>(std::max<int64_t>(0, options_.count - 2));
    return {0, std::max(5.0, 7 - 10 * std::log10(options_.tolerance)) + 6 * further};
  }

 private:
  /// Spectra's solver can't, and a vector of another network wouldn't help.
  std::vector<at::Tensor> warm_start(const ProbeContext& context) const {
    const bool fits =
        context.start.defined() && context.start.numel() == context.objective.parameters().size();
    if (!fits || options_.solver != "lanczos" || !at::isfinite(context.start).all().item<bool>()) return {};
    return {context.start};
  }

  static at::Tensor sum_of_vectors(const TopEigenResult& found) {
    at::Tensor sum;
    for (const auto* end : {&found.largest, &found.smallest}) {
      for (const Eigenpair& pair : *end) sum = sum.defined() ? sum + pair.vector : pair.vector;
    }
    return sum;
  }

  TopEigenvaluesOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, TopEigenvaluesOptions& options) {
  table.add("count", options.count, between(1, 1000), "largest eigenvalues wanted");
  table.add("tolerance", options.tolerance, between(1e-12, 0.5),
            "relative residual at which an eigenpair is accepted");
  table.add("max_krylov", options.max_krylov, at_least(0),
            "most Krylov vectors held; 0: 120, or what fits 512 MiB");
  table.add("max_restarts", options.max_restarts, at_least(0), "restarts of a full basis");
  table.add("solver", options.solver, one_of({"lanczos", "spectra"}),
            "lanczos: ours; spectra: the reference");
}

std::unique_ptr<Probe> make_top_eigenvalues(const TopEigenvaluesOptions& options) {
  return std::make_unique<TopEigenvalues>(options);
}

}  // namespace basin
