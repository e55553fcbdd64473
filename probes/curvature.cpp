#include "probes/curvature.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/seed.h"
#include "hessian/operators.h"
#include "hessian/power_iteration.h"
#include "hessian/spectrum.h"
#include "optim/exclusion.h"
#include "probes/common.h"
#include "probes/eigen_quantity.h"
#include "probes/registry.h"

namespace basin {
namespace {

// Counted on trained networks at PyHessian's tolerances: 6 to 31 per pair, 11 to 55 for the trace.
constexpr double kPowerProducts = 20, kTraceProducts = 30;

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

/// `finite`: all products were.
Quantity sampled(const QuantityNaming& naming, const SampleMean& mean, bool finite) {
  const bool exact = mean.samples == 0 && mean.standard_error == 0;
  Quantity q = named(naming, exact ? UncertaintyKind::none : UncertaintyKind::standard_error);
  const bool resolved = finite && std::isfinite(mean.value) && std::isfinite(mean.standard_error);
  q.status = resolved ? ProbeStatus::ok : finite ? ProbeStatus::not_resolved : ProbeStatus::nonfinite;
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
    if (by_power()) return {1, kPowerProducts * static_cast<double>(options_.count) + kTraceProducts};
    const double pairs =
        std::max(5.0, 5 - 6 * std::log10(options_.tolerance) + static_cast<double>(options_.count));
    return {1, pairs + static_cast<double>((options_.starts - 1) * options_.steps + options_.trace_samples)};
  }
  /// Every matrix but the Hessian follows from the slopes of logits or of single examples' losses.
  std::vector<Answer> needs() const override {
    const bool hessian = matrix_kind(options_.matrix) == Curvature::hessian;
    return {hessian ? Answer::product : Answer::logits};
  }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const std::unique_ptr<CurvatureProducts> whole = context.problem.curvature(matrix_kind(options_.matrix));
    const auto index = coordinates_of(context.problem.parameters().parameters(), [&](const ParameterInfo& p) {
      return among(options_.layers, p.layer) && among(options_.kinds, to_string(p.kind));
    });
    if (index.numel() == 0) throw ConfigError(empty_restriction(context));
    RestrictedOperator part(*whole, index);
    LinearOperator& op = index.numel() == whole->size() ? static_cast<LinearOperator&>(*whole) : part;
    if (by_power()) {
      measure_by_power(op, context, result);
      result.attributes.emplace_back("repeat_difference", whole->repeat_difference());
      return;
    }
    const SharedSpectrum spectrum = shared_spectrum(op, spectrum_options(context));
    add_quantities(spectrum, result);
    record(spectrum, whole->repeat_difference(), result);
    conclude_eigen(spectrum.pairs, options_.tolerance, result);
  }

  bool by_power() const { return options_.solver == "power"; }

  void measure_by_power(LinearOperator& op, const ProbeContext& context, ProbeResult& result) const {
    at::Generator generator = make_generator(context.seed);
    const PowerResult power =
        power_eigenpairs(op, {options_.count, options_.iterations, options_.tolerance}, generator);
    const SampleMean trace = steady_trace(op, options_.trace_samples, options_.trace_tolerance, generator);
    TopEigenResult pairs;
    pairs.status = power.status;
    pairs.largest = power.pairs;
    pairs.products = power.products + trace.samples;
    pairs.method = "power";
    const std::string units = "loss/weight^2";
    result.quantities = {
        eigen_quantity({"lambda", "eigenvalues of largest modulus", "hessian-lambda-pyhessian", units},
                       power.pairs, std::min(options_.count, op.size()), options_),
        sampled({"trace", "trace", "curvature-trace-pyhessian", units}, trace,
                power.status != SolverStatus::nonfinite)};
    result.quantities.front().is_vector = true;
    record_matrix(op.size(), result);
    result.attributes.insert(result.attributes.end(), {{"hvps", pairs.products},
                                                       {"hvps_pairs", power.products},
                                                       {"iterations", power.iterations},
                                                       {"trace_samples", trace.samples}});
    record_solver(pairs, options_, result);
    conclude_eigen(pairs, options_.tolerance, result);
  }

  void record_matrix(int64_t coordinates, ProbeResult& result) const {
    result.attributes.insert(result.attributes.end(), {{"matrix", options_.matrix},
                                                       {"layers", options_.layers},
                                                       {"kinds", options_.kinds},
                                                       {"coordinates", coordinates}});
  }

  SpectrumOptions spectrum_options(const ProbeContext& context) const {
    TopEigenOptions pairs = solver_options(options_, /*smallest=*/1, context);
    pairs.search_copies = options_.search_copies;
    return {pairs, options_.starts, options_.steps, options_.trace_samples};
  }

  std::string empty_restriction(const ProbeContext& context) const {
    std::vector<std::string> layers;
    for (const ParameterInfo& p : context.problem.parameters().parameters()) {
      if (layers.empty() || layers.back() != p.layer) layers.push_back(p.layer);
    }
    return fmt::format("curvature: no parameter is in layers {} and of kinds {}; the network's layers: {}",
                       options_.layers, options_.kinds, fmt::join(layers, ", "));
  }

  void add_quantities(const SharedSpectrum& spectrum, ProbeResult& result) const {
    const std::string units = "loss/weight^2";
    const bool finite = spectrum.pairs.status != SolverStatus::nonfinite && spectrum.finite;
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
    for (Quantity& q : result.quantities) {  // means over products that aren't a symmetric operator's
      if (!spectrum.trusted() && q.status == ProbeStatus::ok) q.status = ProbeStatus::not_converged;
    }
    result.attributes.emplace_back("outlier_threshold", threshold);
    if (finite && spectrum.may_miss(threshold))
      result.message = "more eigenvalues than count may be above the threshold: a larger count resolves them";
  }

  void record(const SharedSpectrum& spectrum, double repeat_difference, ProbeResult& result) const {
    const auto& pairs = spectrum.pairs;
    const double range = pairs.largest.empty() || pairs.smallest.empty()
                             ? kNaN
                             : pairs.largest.front().value - pairs.smallest.front().value;
    SpectralDensity density;
    if (range > 0 && spectrum.finite)
      density = spectrum.density(options_.density_width * range, options_.density_points);
    record_matrix(spectrum.size, result);
    result.attributes.insert(result.attributes.end(),
                             {{"hvps", spectrum.products},
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

const std::vector<Preset<CurvatureOptions>>& curvature_variants() {
  static const std::vector<Preset<CurvatureOptions>> presets = [] {
    CurvatureOptions pyhessian;
    pyhessian.solver = "power";
    pyhessian.count = 1;
    pyhessian.trace_samples = 100;
    return std::vector{preset("none", CurvatureOptions()), preset("pyhessian", pyhessian)};
  }();
  return presets;
}

void bind_fields(OptionTable& table, CurvatureOptions& options) {
  table.add("solver", options.solver, one_of({"lanczos", "power"}),
            "power: eigenvalues of largest modulus by power iteration, and the trace; docs/probes.md");
  table.add("matrix", options.matrix, one_of(matrix_names()), "curvature matrix whose spectrum is estimated");
  table.add("layers", options.layers, anything(), "restrict to these layers; []: all");
  table.add("kinds", options.kinds, parameter_kinds(), "restrict to these kinds of parameters; []: all");
  bind_solver_options(table, options);
  table.add("search_copies", options.search_copies, anything(),
            "search again from a second start for repeated eigenvalues");
  table.add("starts", options.starts, between(2, 1000), "random starts for the density and its error band");
  table.add("steps", options.steps, between(2, 1000), "matrix-vector products per start, after the first");
  table.add("trace_samples", options.trace_samples, at_least(0),
            "matrix-vector products for the trace, besides the first ones of the starts; power: upper bound");
  table.add("iterations", options.iterations, at_least(1),
            "power: most matrix-vector products per eigenpair");
  table.add("trace_tolerance", options.trace_tolerance, at_least(0),
            "power: the trace is done once a sample changes its mean by a smaller share");
  table.add("outlier_share", options.outlier_share, between(1e-6, 1),
            "threshold as a share of lambda_1: eigenvalues above it are counted as outliers");
  table.add("density_width", options.density_width, between(1e-6, 1),
            "width of the smoothing, as a share of lambda_1 - lambda_min");
  table.add("density_points", options.density_points, between(2, 4000),
            "points at which the density is computed");
}

}  // namespace

CurvatureOptions::CurvatureOptions() {
  count = 5;
  preset = values_of = "none";
}

void bind_options(OptionTable& table, CurvatureOptions& options) {
  bind_presets(table, options, curvature_variants(), bind_fields,
               "reproduce a published tool: its values for all options below that aren't set; docs/probes.md",
               "compat");
}

std::unique_ptr<Probe> make_curvature(const CurvatureOptions& options) {
  return std::make_unique<CurvatureProbe>(options);
}

ProbeEntry curvature_entry() {
  return probe_entry<CurvatureOptions, make_curvature>({
      .name = "curvature",
      .label = "curvature",
      .help = "spectrum of a curvature matrix: eigenvalues, density, trace, Frobenius norm",
      .version = 2,
      .definitions = {"curvature-lambda", "curvature-lambda-min", "curvature-trace", "curvature-frobenius",
                      "curvature-outliers", "hessian-lambda-pyhessian", "curvature-trace-pyhessian"},
      .entries = {"lambda_#", "lambda_min", "trace", "squared_frobenius", "outliers"},
      .audit = {.cheap = {"count=1", "starts=3", "steps=4", "trace_samples=8", "density_points=2"},
                .variants = {{"", {"compat=pyhessian"}}}},
  });
}

}  // namespace basin
