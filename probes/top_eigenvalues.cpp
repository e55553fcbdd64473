#include "probes/top_eigenvalues.h"

#include <ATen/ATen.h>

#include "hessian/top_eigenpairs.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"
#include "probes/registry.h"

namespace basin {
namespace {

class TopEigenvalues final : public Probe {
 public:
  explicit TopEigenvalues(const TopEigenvaluesOptions& options)
      : Probe("top_eigenvalues"), options_(options) {}

  ProbeCost expected_cost() const override {
    // Counted on trained networks: 16-22, 25-33 and 29-43 products at tolerances 0.05, 0.01 and 0.001 for one
    // or two values, most of them spent on the smallest one; without it 4-10, and three a further value.
    if (options_.smallest == 0)
      return {1, 2 - 2 * std::log10(options_.tolerance) + 3 * (options_.count - 1.0)};
    const auto further = static_cast<double>(std::max<int64_t>(0, options_.count - 2));
    return {1, std::max(5.0, 7 - 10 * std::log10(options_.tolerance)) + 6 * further};
  }
  std::vector<Answer> needs() const override { return {Answer::product}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const std::unique_ptr<CurvatureProducts> hessian = context.problem.curvature(Curvature::hessian);
    TopEigenOptions solver = solver_options(options_, options_.smallest, context);
    solver.solver = options_.solver;
    const TopEigenResult found = top_eigenpairs(*hessian, solver);
    const int64_t expected = std::min(options_.count, hessian->size());
    const double norm = context.problem.parameters().gather().to(at::kDouble).norm().item<double>();
    result.quantities = {
        eigen_quantity({"lambda", "largest Hessian eigenvalues", "hessian-lambda", "loss/weight^2"},
                       found.largest, expected, options_)};
    result.quantities.front().is_vector = true;
    if (options_.smallest > 0) add_smallest(found, hessian->size(), result);
    result.quantities.push_back(
        scaled_first({"lambda_1_w2", "largest Hessian eigenvalue times squared weight norm",
                      "hessian-lambda-norm", "loss"},
                     result.quantities.front(), norm * norm));
    result.attributes.insert(result.attributes.end(),
                             {{"solver", options_.solver}, {"hvps", found.products}});
    record_solver(found, options_, result);
    conclude_eigen(found, options_.tolerance, result);
  }

  void add_smallest(const TopEigenResult& found, int64_t size, ProbeResult& result) const {
    Quantity q =
        eigen_quantity({"lambda_min", "smallest Hessian eigenvalue", "hessian-lambda-min", "loss/weight^2"},
                       found.smallest, std::min(options_.smallest, size), options_);
    q.is_vector = options_.smallest > 1;
    result.quantities.push_back(q);
  }

  TopEigenvaluesOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, TopEigenvaluesOptions& options) {
  bind_solver_options(table, options);
  table.add("smallest", options.smallest, between(0, 1000), "number of smallest eigenvalues");
  table.add("solver", options.solver, one_of({"lanczos", "spectra"}),
            "lanczos: Basin's own; spectra: the reference implementation");
}

std::unique_ptr<Probe> make_top_eigenvalues(const TopEigenvaluesOptions& options) {
  return std::make_unique<TopEigenvalues>(options);
}

ProbeEntry top_eigenvalues_entry() {
  return probe_entry<TopEigenvaluesOptions, make_top_eigenvalues>({
      .name = "top_eigenvalues",
      .label = "Hessian eigenvalues",
      .help = "largest and smallest Hessian eigenvalues",
      .version = 4,
      .definitions = {"hessian-lambda", "hessian-lambda-min", "hessian-lambda-norm"},
      .entries = {"lambda_#", "lambda_min", "lambda_min_#", "lambda_1_w2"},
      .headlines = {{"lambda", "λ₁", "λ₁ (loss / weight²)"}, {"lambda_1_w2", "", "λ₁ ‖w‖² (loss)"}},
      .audit = {.cheap = {"count=1"}},
  });
}

}  // namespace basin
