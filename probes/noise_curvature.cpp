#include "probes/noise_curvature.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/math/nan.h"
#include "core/seed.h"
#include "hessian/gradients/per_example_gradients.h"
#include "hessian/spectrum.h"
#include "probes/estimators/group_products.h"
#include "probes/estimators/matrix_alignment.h"
#include "probes/estimators/set_estimates.h"
#include "probes/estimators/subspace_overlap.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

struct Findings {
  bool enough = true, finite = true;
  SharedSpectrum hessian, covariance;
  CurvedNoise noise;
  NoiseEstimate estimate = no_noise_estimate();
  Overlap overlap{kNaN, kNaN};
  ProbeStatus overlap_status = ProbeStatus::not_resolved;
  Estimate cosine = no_estimate(), trace_ratio = no_estimate();
};

class NoiseCurvature final : public Probe {
 public:
  explicit NoiseCurvature(const NoiseCurvatureOptions& options)
      : Probe("noise_curvature"), options_(options) {}

  ProbeCost expected_cost() const override {
    const double pairs = 5 - 6 * std::log10(options_.tolerance) + static_cast<double>(options_.count);
    const double products = 2 * pairs + static_cast<double>(options_.groups + 1 + 2 * options_.trace_samples);
    return {7, products};  // counted: the means, single gradients, the graphs of G and H
  }
  /// Logits: the covariance matrix follows from the slopes of single examples' losses.
  std::vector<Answer> needs() const override {
    return {Answer::gradient, Answer::product, Answer::batch_gradient, Answer::batch_product, Answer::logits};
  }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const Findings found = findings(context);
    add_noise(found, result);
    add_covariance(found, context.problem.parameters().size(), result);
    record(found, result);
    conclude(found, result);
  }

  Findings findings(const ProbeContext& context) {
    Findings found;
    const at::Tensor mean = context.problem.gradient();
    found.enough = context.problem.examples() >= kLeastGroups;
    found.finite = at::isfinite(mean).all().item<bool>();
    if (!found.enough || !found.finite) return found;
    found.finite = find_pairs(context, found);
    if (!found.finite) return found;
    found.noise = curved_noise(products_of(context, mean, found.hessian.pairs.largest));
    found.estimate = estimate_noise(found.noise.numbers, context.train_examples);
    const std::unique_ptr<CurvatureProducts> covariance =
        context.problem.curvature(Curvature::gradient_covariance);
    found.covariance = shared_spectrum(*covariance, spectrum_options(context, "covariance"));
    found.finite = found.estimate.all_finite && found.hessian.finite && found.covariance.finite &&
                   found.covariance.pairs.status != SolverStatus::nonfinite;
    if (found.finite) compare(context.problem.parameters().size(), found);
    return found;
  }

  /// One pair more than asked for: it tells how far the leading ones are from the rest.
  SpectrumOptions spectrum_options(const ProbeContext& context, const std::string& matrix) const {
    TopEigenOptions pairs = solver_options(options_, /*smallest=*/0, context);
    ++pairs.count;
    pairs.seed = derive_seed(context.seed, matrix);
    pairs.state_key += "\n" + matrix;
    return {pairs, /*starts=*/2, /*steps=*/1, options_.trace_samples - 1};
  }

  bool find_pairs(const ProbeContext& context, Findings& found) const {
    const std::unique_ptr<CurvatureProducts> hessian = context.problem.curvature(Curvature::hessian);
    found.hessian = shared_spectrum(*hessian, spectrum_options(context, "hessian"));
    return found.hessian.pairs.status != SolverStatus::nonfinite;
  }

  CurvedProducts products_of(const ProbeContext& context, const at::Tensor& mean,
                             const std::vector<Eigenpair>& pairs) const {
    CurvedProducts products;
    const int64_t n = context.problem.examples();
    // As few as can be are left over: which ones is in no error (grouping_variance).
    const int64_t size = std::max<int64_t>(1, std::min(n / options_.groups, n / kLeastGroups));
    at::Generator generator = make_generator(derive_seed(context.seed, "noise-groups"));
    const at::Tensor order = at::randperm(n, generator, at::kLong);
    add_group_products(context.problem, mean, order, size, products);
    take_along(context.problem, pairs, products);
    return products;
  }

  static void take_along(Problem& problem, const std::vector<Eigenpair>& pairs, CurvedProducts& products) {
    std::vector<ExampleWeights> weights;
    std::vector<double> values;
    for (const Eigenpair& pair : pairs) {
      weights.push_back({pair.vector});
      values.push_back(pair.value);
    }
    std::vector<at::Tensor> columns;
    for (const at::Tensor& by_tensor : PerExampleGradients(problem).products(weights))
      columns.push_back(by_tensor.sum(1).to(at::kCPU));
    products.along = at::stack(columns, 1);
    products.values = at::tensor(values, at::kDouble);
  }

  /// Overlap and alignments are of the n examples: of tr(HC) the grouping alone is uncertain.
  void compare(int64_t parameters, Findings& found) const {
    const TopSpace u(found.hessian.pairs.largest, options_.count, parameters);
    const TopSpace v(found.covariance.pairs.largest, options_.count, parameters);
    found.overlap = overlap_of(u, v);
    const bool resolved = found.overlap.bound < 0.5;  // of 0 to 1
    found.overlap_status = !u.converged || !v.converged ? ProbeStatus::not_converged
                           : resolved                   ? ProbeStatus::ok
                                                        : ProbeStatus::not_resolved;
    const auto n = static_cast<int64_t>(found.noise.numbers.n);
    const Estimate product = estimate_noise(found.noise.numbers, n).finite.tr_sigma;
    const MatrixSums h{found.hessian.trace, found.hessian.squared_frobenius};
    const MatrixSums c{found.covariance.trace, found.covariance.squared_frobenius};
    const auto least =
        std::min<int64_t>(static_cast<int64_t>(found.noise.numbers.traces.size()), options_.trace_samples);
    const double t = student_quantile(static_cast<double>(least) - 1);
    found.cosine = cosine_alignment(product, h, c, t);
    found.trace_ratio = trace_alignment(product, h, c, parameters, t);
  }

  static void add_noise(const Findings& found, ProbeResult& result) {
    const std::string product_units = "loss^3/weight^4";
    for (const Side side : {Side::population, Side::finite}) {
      const NoiseEstimate nothing = no_noise_estimate();
      const NoiseEstimate& estimate = found.finite ? found.estimate : nothing;
      const NoiseNumbers& numbers = side == Side::population ? estimate.population : estimate.finite;
      const auto add = [&](const std::string& name, const std::string& long_name, const std::string& units,
                           const Estimate& e, bool resolved) {
        result.quantities.push_back(estimated({name, long_name, "noise-scale-hessian", units}, side, e,
                                              status_of(e, resolved, !found.finite)));
      };
      add("b_hessian", "Hessian-weighted gradient noise scale", "examples", numbers.b_simple,
          numbers.resolved);
      add("g_h_g", "curvature of the loss along the mean gradient, times its square", product_units,
          numbers.g2, numbers.resolved);
      add("tr_h_sigma", "trace of Hessian times gradient covariance", product_units, numbers.tr_sigma, true);
    }
  }

  void add_covariance(const Findings& found, int64_t parameters, ProbeResult& result) const {
    const int64_t expected = std::min(options_.count, parameters);
    std::vector<Eigenpair> leading = found.covariance.pairs.largest;
    leading.resize(std::min(leading.size(), static_cast<size_t>(expected)));
    Quantity lambda = eigen_quantity({"covariance_lambda", "largest eigenvalues of the gradient covariance",
                                      "covariance-lambda", "(loss/weight)^2"},
                                     leading, expected, options_);
    lambda.is_vector = true;
    if (!found.enough && found.finite) leave_unresolved(lambda);
    result.quantities.push_back(std::move(lambda));
    Quantity overlap = named({"overlap", "overlap of the leading eigenvectors of covariance and Hessian",
                              "noise-hessian-overlap", "1"},
                             UncertaintyKind::subspace_bound);
    overlap.value = {found.overlap.value};
    overlap.uncertainty = {found.overlap.bound};
    overlap.status = found.finite ? found.overlap_status : ProbeStatus::nonfinite;
    result.quantities.push_back(std::move(overlap));
    add_alignment(
        {"alignment_cosine", "cosine of Hessian and gradient covariance", "noise-hessian-cosine", "1"}, found,
        found.cosine, result);
    add_alignment({"alignment_trace", "alignment of Hessian and gradient covariance by their traces",
                   "noise-hessian-trace-alignment", "1"},
                  found, found.trace_ratio, result);
  }

  static void leave_unresolved(Quantity& q) {
    q.status = ProbeStatus::not_resolved;
    q.entry_status.assign(q.value.size(), q.status);
  }

  static void add_alignment(const QuantityNaming& naming, const Findings& found, const Estimate& e,
                            ProbeResult& result) {
    ProbeStatus status = status_of(e, std::isfinite(e.error), !found.finite);
    const bool trusted = found.hessian.trusted() && found.covariance.trusted();
    if (status == ProbeStatus::ok && !trusted) status = ProbeStatus::not_converged;
    result.quantities.push_back(measured(naming, e, status));
  }

  void record(const Findings& found, ProbeResult& result) const {
    const auto both = [](const SampleMean& mean) {
      return std::vector<double>{mean.value, mean.standard_error};
    };
    const LeftOut& numbers = found.noise.numbers;
    std::vector<double> values, residuals;
    for (const Eigenpair& pair : found.hessian.pairs.largest) {
      values.push_back(pair.value);
      residuals.push_back(pair.residual);
    }
    const auto groups = static_cast<int64_t>(numbers.traces.size());
    result.attributes.insert(result.attributes.end(),
                             {{"groups", groups},
                              {"group_size", static_cast<int64_t>(numbers.b)},
                              {"gradients", int64_t{3}},
                              {"hvps", found.hessian.products + (groups > 0 ? groups + 1 : 0)},
                              {"covariance_products", found.covariance.products},
                              {"deflated_share", found.noise.deflated / numbers.trace},
                              {"group_deviation", found.noise.plain_deviation},
                              {"group_deviation_deflated", found.noise.remainder_deviation},
                              {"hessian_lambda", values},
                              {"hessian_residuals", residuals},
                              {"hessian_trace", both(found.hessian.trace)},
                              {"hessian_squared_frobenius", both(found.hessian.squared_frobenius)},
                              {"covariance_trace", both(found.covariance.trace)},
                              {"covariance_squared_frobenius", both(found.covariance.squared_frobenius)}});
    record_solver(found.covariance.pairs, options_, result);
  }

  void conclude(const Findings& found, ProbeResult& result) const {
    result.status = gravest_status(result.quantities);
    if (!found.finite) {
      result.message = "a gradient or a product was not finite";
    } else if (!found.enough) {
      result.message = fmt::format("fewer than {} examples", kLeastGroups);
    } else if (result.status != ProbeStatus::ok) {
      std::vector<std::string> names;
      for (const Quantity& q : result.quantities) {
        if (q.status != ProbeStatus::ok) names.push_back(q.name + " (" + to_string(q.status) + ")");
      }
      result.message = fmt::format("not ok: {}", fmt::join(names, ", "));
    }
  }

  NoiseCurvatureOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, NoiseCurvatureOptions& options) {
  bind_solver_options(table, options);
  table.add(
      "groups", options.groups, between(kLeastGroups, 1000),
      "groups of examples for the trace of Hessian times covariance; each costs a Hessian-vector product");
  table.add("trace_samples", options.trace_samples, between(3, 1000),
            "matrix-vector products for the trace and Frobenius norm of each matrix");
}

std::unique_ptr<Probe> make_noise_curvature(const NoiseCurvatureOptions& options) {
  return std::make_unique<NoiseCurvature>(options);
}

ProbeEntry noise_curvature_entry() {
  return probe_entry<NoiseCurvatureOptions, make_noise_curvature>({
      .name = "noise_curvature",
      .label = "noise and curvature",
      .help = "gradient noise against curvature: weighted noise scale, overlap, alignment",
      .version = 3,
      .definitions = {"noise-scale-hessian-population", "noise-scale-hessian-finite", "covariance-lambda",
                      "noise-hessian-overlap", "noise-hessian-cosine", "noise-hessian-trace-alignment"},
      .entries = {"b_hessian", "g_h_g", "tr_h_sigma", "b_hessian_finite", "g_h_g_finite", "tr_h_sigma_finite",
                  "covariance_lambda_#", "overlap", "alignment_cosine", "alignment_trace"},
      .ratios = {{"b_hessian", "tr_h_sigma", "g_h_g"}},
      .audit = {.cheap = {"count=1", "groups=8", "trace_samples=6"}},
  });
}

}  // namespace basin
