#include "probes/top_eigenvalues.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>

#include "hessian/curvature_operator.h"
#include "hessian/top_eigenpairs.h"
#include "probes/common.h"

namespace basin {
namespace {

Quantity eigenvalues(const std::string& name, const std::string& long_name, const std::string& definition,
                     const std::vector<Eigenpair>& pairs, int64_t expected) {
  Quantity q;
  q.name = name;
  q.long_name = long_name;
  q.definition = definition;
  q.units = "loss/weight^2";
  q.uncertainty_kind = "residual";
  for (const Eigenpair& pair : pairs) {
    q.value.push_back(pair.value);
    q.uncertainty.push_back(pair.residual);
    q.entry_status.push_back(pair.converged ? "ok" : "not_converged");
  }
  if (pairs.empty()) {
    q.value.assign(expected, kNaN);
    q.uncertainty.assign(expected, kNaN);
    q.entry_status.assign(expected, "nonfinite");
  }
  q.status = gravest_status(q.entry_status);
  return q;
}

Quantity scaled_by_norm(const Quantity& lambda, double squared_norm) {
  Quantity q = lambda;
  q.name = "lambda_1_w2";
  q.is_vector = false;
  q.status = lambda.entry_status.front();  // a lambda_2 that has not converged says nothing of lambda_1
  q.entry_status = {};
  q.long_name = "largest Hessian eigenvalue times squared weight norm";
  q.definition = "hessian-lambda-norm";
  q.units = "loss";
  q.value = {lambda.value.front() * squared_norm};
  q.uncertainty = {lambda.uncertainty.front() * squared_norm};
  return q;
}

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
                                                          .solver = options_.solver});
    const int64_t expected = std::min(options_.count, hessian.size());
    const double norm = context.objective.parameters().gather().to(at::kDouble).norm().item<double>();
    result.quantities = {
        eigenvalues("lambda", "largest Hessian eigenvalues", "hessian-lambda", found.largest, expected),
        eigenvalues("lambda_min", "smallest Hessian eigenvalue", "hessian-lambda-min", found.smallest, 1)};
    result.quantities.front().is_vector = true;
    result.quantities.push_back(scaled_by_norm(result.quantities.front(), norm * norm));
    record(found, result);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  void record(const TopEigenResult& found, ProbeResult& result) const {
    std::vector<double> relative;
    for (const auto* end : {&found.largest, &found.smallest}) {
      for (const Eigenpair& pair : *end) relative.push_back(pair.relative_residual);
    }
    result.attributes.insert(result.attributes.end(), {{"solver", options_.solver},
                                                       {"method", found.method},
                                                       {"tolerance", options_.tolerance},
                                                       {"hvps", found.products},
                                                       {"krylov", found.krylov},
                                                       {"restarts", found.restarts},
                                                       {"relative_residuals", relative}});
    result.status = gravest_status(result.quantities);
    if (result.status == "nonfinite") result.message = "a Hessian-vector product was not finite";
    if (result.status == "not_converged") {
      result.message = fmt::format("a residual is above the tolerance {} after {} products",
                                   options_.tolerance, found.products);
    }
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
  table.add("max_restarts", options.max_restarts, at_least(0),
            "restarts of Spectra's solver past a full basis");
  table.add("solver", options.solver, one_of({"lanczos", "spectra"}),
            "lanczos: ours; spectra: the reference");
}

std::unique_ptr<Probe> make_top_eigenvalues(const TopEigenvaluesOptions& options) {
  return std::make_unique<TopEigenvalues>(options);
}

}  // namespace basin
