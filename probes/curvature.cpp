#include "probes/curvature.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"
#include "hessian/curvature_operator.h"
#include "hessian/operators.h"
#include "hessian/spectrum.h"
#include "optim/exclusion.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"

namespace basin {
namespace {

constexpr Curvature kMatrices[] = {Curvature::hessian, Curvature::gauss_newton, Curvature::empirical_fisher,
                                   Curvature::gradient_covariance};

std::vector<std::string> matrix_names() {
  std::vector<std::string> names;
  for (const Curvature kind : kMatrices) names.emplace_back(to_string(kind));
  return names;
}

Curvature matrix_kind(const std::string& name) {
  for (const Curvature kind : kMatrices) {
    if (name == to_string(kind)) return kind;
  }
  throw ConfigError("curvature.matrix = \"" + name + "\" is no curvature matrix");
}

bool among(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

Quantity sampled(const QuantityNaming& naming, const SampleMean& mean, bool finite) {
  const bool exact = mean.samples == 0 && mean.standard_error == 0;
  Quantity q = named(naming, exact ? "none" : "standard_error");
  const bool resolved = std::isfinite(mean.value) && std::isfinite(mean.standard_error);
  q.status = resolved ? "ok" : finite ? "not_resolved" : "nonfinite";
  const double value = resolved ? mean.value : kNaN, error = resolved ? mean.standard_error : kNaN;
  const double t = exact || !resolved ? 0 : student_quantile(static_cast<double>(mean.samples - 1));
  q.value = {value};
  q.uncertainty = {error};
  q.ci_low = {value - t * error};
  q.ci_high = {value + t * error};
  return q;
}

class CurvatureProbe final : public Probe {
 public:
  explicit CurvatureProbe(const CurvatureOptions& options) : Probe("curvature"), options_(options) {}

  ProbeCost expected_cost() const override {
    const double pairs =
        std::max(5.0, 5 - 6 * std::log10(options_.tolerance) + static_cast<double>(options_.count));
    return {0, pairs + static_cast<double>((options_.starts - 1) * options_.steps + options_.trace_samples)};
  }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    CurvatureOperator whole(context.objective, matrix_kind(options_.matrix));
    const auto index =
        coordinates_of(context.objective.parameters().parameters(), [&](const ParameterInfo& p) {
          return among(options_.layers, p.layer) && among(options_.kinds, to_string(p.kind));
        });
    if (index.numel() == 0) throw ConfigError(empty_restriction(context));
    RestrictedOperator part(whole, index);
    LinearOperator& op = index.numel() == whole.size() ? static_cast<LinearOperator&>(whole) : part;
    const SharedSpectrum spectrum = shared_spectrum(op, spectrum_options(context));
    add_quantities(spectrum, result);
    record(spectrum, whole.repeat_difference(), result);
    conclude_eigen(spectrum.pairs, options_.tolerance, result);
  }

  SpectrumOptions spectrum_options(const ProbeContext& context) const {
    TopEigenOptions pairs = solver_options(options_, /*smallest=*/1, context);
    pairs.search_copies = options_.search_copies;
    return {pairs, options_.starts, options_.steps, options_.trace_samples};
  }

  std::string empty_restriction(const ProbeContext& context) const {
    std::vector<std::string> layers;
    for (const ParameterInfo& p : context.objective.parameters().parameters()) {
      if (layers.empty() || layers.back() != p.layer) layers.push_back(p.layer);
    }
    return fmt::format("curvature: no parameter is in layers {} and of kinds {}; the network's layers: {}",
                       options_.layers, options_.kinds, fmt::join(layers, ", "));
  }

  void add_quantities(const SharedSpectrum& spectrum, ProbeResult& result) const {
    const std::string units = "loss/weight^2";
    const bool finite = spectrum.pairs.status != "nonfinite";
    const int64_t expected = std::min(options_.count, spectrum.size);
    Quantity lambda = eigen_quantity({"lambda", "largest eigenvalues", "curvature-lambda", units},
                                     spectrum.pairs.largest, expected, options_);
    lambda.is_vector = true;
    const double threshold = options_.outlier_share * lambda.value.front();
    result.quantities = {
        lambda,
        eigen_quantity({"lambda_min", "smallest eigenvalue", "curvature-lambda-min", units},
                       spectrum.pairs.smallest, 1, options_),
        sampled({"trace", "trace", "curvature-trace", units}, spectrum.trace, finite),
        sampled({"squared_frobenius", "squared Frobenius norm", "curvature-frobenius", "(loss/weight^2)^2"},
                spectrum.squared_frobenius, finite),
        sampled({"outliers", "eigenvalues above the threshold", "curvature-outliers", "1"},
                spectrum.count_above(threshold), finite)};
    result.attributes.emplace_back("outlier_threshold", threshold);
  }

  void record(const SharedSpectrum& spectrum, double repeat_difference, ProbeResult& result) const {
    const auto& pairs = spectrum.pairs;
    const double range = pairs.largest.empty() || pairs.smallest.empty()
                             ? kNaN
                             : pairs.largest.front().value - pairs.smallest.front().value;
    SpectralDensity density;
    if (range > 0) density = spectrum.density(options_.density_width * range, options_.density_points);
    result.attributes.insert(result.attributes.end(),
                             {{"matrix", options_.matrix},
                              {"layers", options_.layers},
                              {"kinds", options_.kinds},
                              {"coordinates", spectrum.size},
                              {"hvps", spectrum.products},
                              {"hvps_pairs", pairs.products},
                              {"starts", static_cast<int64_t>(spectrum.starts.size())},
                              {"trace_samples", spectrum.trace.samples},
                              {"repeat_difference", repeat_difference}});
    if (!density.grid.empty()) {
      result.attributes.insert(result.attributes.end(), {{"density_grid", density.grid},
                                                         {"density", density.density},
                                                         {"density_standard_error", density.standard_error},
                                                         {"density_width", density.width}});
    }
    record_solver(pairs, options_, result);
  }

  CurvatureOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, CurvatureOptions& options) {
  table.add("matrix", options.matrix, one_of(matrix_names()), "whose spectrum");
  table.add("layers", options.layers, anything(), "restrict to these layers; []: all");
  table.add("kinds", options.kinds, parameter_kinds(), "restrict to these kinds of parameters; []: all");
  bind_solver_options(table, options);
  table.add("search_copies", options.search_copies, anything(),
            "look again from a second start for eigenvalues that come more than once");
  table.add("starts", options.starts, between(2, 1000), "random starts of the density, for its band");
  table.add("steps", options.steps, between(2, 1000), "products of each start after the first");
  table.add("trace_samples", options.trace_samples, at_least(0),
            "further products for the trace beside the first ones of the starts");
  table.add("outlier_share", options.outlier_share, between(1e-6, 1),
            "of lambda_1, above which eigenvalues are counted");
  table.add("density_width", options.density_width, between(1e-6, 1), "of lambda_1 - lambda_min: smoothing");
  table.add("density_points", options.density_points, between(2, 4000), "points of the density");
}

std::unique_ptr<Probe> make_curvature(const CurvatureOptions& options) {
  return std::make_unique<CurvatureProbe>(options);
}

}  // namespace basin
