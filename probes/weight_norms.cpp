#include "probes/weight_norms.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "probes/common.h"
#include "probes/estimators/layer_norms.h"
#include "probes/registry.h"

namespace basin {
namespace {

/// The numbers of some quantities until it is known whether they exist.
struct Found {
  QuantityNaming naming;
  std::vector<double> value, residual;  // residual empty: without error
  std::string reason;                   // why there is no value
  bool is_vector = false;
  ProbeStatus without = ProbeStatus::not_resolved;  // the status where there is a reason
};

double squared(double x) { return x * x; }

class WeightNorms final : public Probe {
 public:
  explicit WeightNorms(const WeightNormsOptions& options) : Probe("weight_norms"), options_(options) {}

  /// A few examples' forward passes.
  ProbeCost expected_cost() const override { return {0.01, 0}; }
  /// Layers, for what follows from them alone.
  std::vector<Answer> needs() const override { return {}; }

 private:
  void measure(const ProbeContext& context, ProbeResult& result) override {
    const bool known = context.problem.answers(Answer::layers);
    const NetworkLayers layers = known ? network_layers(context.network()) : unknown_layers();
    const bool finite = std::isfinite(norm_of(context.problem.parameters().gather())) && all_finite(layers);
    std::vector<Found> found = of_all_weights(context);
    for (Found& one : of_layers(layers, finite)) found.push_back(std::move(one));
    found.push_back(spectral_distance(context, layers, finite));
    NormOrReason path{kNaN, known ? "" : layers.reason};
    if (finite && known) path = path_norm(context.network(), layers);
    found.push_back({{"path_norm", "path norm", "path-norm", "logit"}, {path.value}, {}, path.reason});
    if (options_.operator_norms) {
      for (Found& one : of_operators(layers, finite, context.seed)) found.push_back(std::move(one));
    }
    for (Found& one : found) {
      if (!known && one.reason == layers.reason) one.without = ProbeStatus::unavailable;
      if (!one.is_vector || options_.by_layer) add(one, finite, result);
    }
    record(layers, result);
    result.status = gravest_status(result.quantities);
    if (!finite) result.message = "a weight is not finite";
  }

  static NetworkLayers unknown_layers() { return {{}, kNaN, Unanswered({Answer::layers}).what()}; }

  static std::string units_of_product(const NetworkLayers& layers) {
    return layers.list.empty() ? "weight^(2 layers)" : fmt::format("weight^{}", 2 * layers.list.size());
  }

  static bool all_finite(const NetworkLayers& layers) {
    return std::all_of(layers.list.begin(), layers.list.end(),
                       [](const NetworkLayer& layer) { return std::isfinite(norm_of(layer.weight)); });
  }

  static std::vector<Found> of_all_weights(const ProbeContext& context) {
    const at::Tensor w = context.problem.parameters().gather().to(at::kDouble);
    const at::Tensor& w0 = context.initial_weights;
    const double norm = norm_of(w);
    const double distance = w0.defined() ? norm_of(w - w0.to(w.device(), at::kDouble)) : kNaN;
    return {{{"weight_norm", "norm of all weights", "weight-norm", "weight"}, {norm}, {}, ""},
            {{"squared_weight_norm", "squared norm of all weights", "weight-norm-squared", "weight^2"},
             {norm * norm},
             {},
             ""},
            {{"distance_from_start", "distance from the initial weights", "distance-from-start", "weight"},
             {distance},
             {},
             w0.defined() ? "" : kNoStart}};
  }

  /// Frobenius and spectral norms, their products and what Jiang et al. make of them.
  static std::vector<Found> of_layers(const NetworkLayers& layers, bool finite) {
    std::vector<double> frobenius, spectral, residuals;
    std::vector<SpectralNorm> norms;
    double frobenius_product = 1, ratios = 0;
    for (const NetworkLayer& layer : layers.list) {
      const SpectralNorm norm = finite ? spectral_norm(layer.weight) : SpectralNorm{kNaN, kNaN};
      norms.push_back(norm);
      spectral.push_back(norm.value);
      residuals.push_back(norm.residual);
      frobenius.push_back(norm_of(layer.weight));
      frobenius_product *= squared(frobenius.back());
      ratios += squared(frobenius.back() / norm.value);
    }
    const SpectralNorm product = product_of(norms);
    const double spectral_product = squared(product.value), error = 2 * product.value * product.residual;
    const double relative = product.value > 0 ? product.residual / product.value : 0;
    const auto depth = static_cast<double>(layers.list.size());
    const double sum = depth * std::pow(spectral_product, 1 / depth);
    const std::string& reason = layers.reason;
    const bool empty_layer = std::find(spectral.begin(), spectral.end(), 0.0) != spectral.end();
    const std::string units = units_of_product(layers);
    return {{{"layer_frobenius", "Frobenius norms by layer", "layer-frobenius", "weight"},
             frobenius,
             {},
             reason,
             true},
            {{"layer_spectral", "spectral norms by layer", "layer-spectral", "weight"},
             spectral,
             residuals,
             reason,
             true},
            {{"frobenius_product", "product of squared Frobenius norms", "frobenius-product", units},
             {frobenius_product},
             {},
             reason},
            {{"frobenius_sum", "depth times their geometric mean", "frobenius-sum", "weight^2"},
             {depth * std::pow(frobenius_product, 1 / depth)},
             {},
             reason},
            {{"spectral_product", "product of squared spectral norms", "spectral-product", units},
             {spectral_product},
             {error},
             reason},
            {{"spectral_sum", "depth times their geometric mean", "spectral-sum", "weight^2"},
             {sum},
             {2 * sum * relative / depth},
             reason},
            {{"frobenius_over_spectral", "sum of |W|_F^2/|W|_2^2", "frobenius-over-spectral", "1"},
             {ratios},
             {2 * ratios * relative},  // at most: all relative residuals in one layer
             reason.empty() && empty_layer ? "a layer's weights are all 0" : reason}};
  }

  static Found spectral_distance(const ProbeContext& context, const NetworkLayers& layers, bool finite) {
    Found found{{"distance_spectral", "sum of |W - W0|_2^2", "distance-spectral", "weight^2"},
                {kNaN},
                {kNaN},
                context.initial_weights.defined() ? layers.reason : kNoStart};
    if (!finite || !found.reason.empty()) return found;
    const ParameterVector& vector = context.problem.parameters();
    const std::vector<at::Tensor> start = vector.unflatten(context.initial_weights.to(at::kCPU, at::kDouble));
    found.value = found.residual = {0};
    for (const NetworkLayer& layer : layers.list) {
      const at::Tensor weight = vector.parameters()[layer.parameter].tensor.detach();
      const SpectralNorm norm = spectral_norm(weight.to(at::kCPU, at::kDouble) - start[layer.parameter]);
      found.value[0] += squared(norm.value);
      found.residual[0] += 2 * norm.value * norm.residual;
    }
    return found;
  }

  static std::vector<Found> of_operators(const NetworkLayers& layers, bool finite, uint64_t seed) {
    std::vector<SpectralNorm> norms;
    std::vector<double> values, residuals;
    for (const NetworkLayer& layer : layers.list) {
      norms.push_back(finite ? operator_norm(layer, derive_seed(seed, "operator-norm", norms.size()))
                             : SpectralNorm{kNaN, kNaN});
      values.push_back(norms.back().value);
      residuals.push_back(norms.back().residual);
    }
    const SpectralNorm product = product_of(norms);
    return {{{"layer_operator", "operator norms by layer", "layer-operator", "weight"},
             values,
             residuals,
             layers.reason,
             true},
            {{"operator_product", "product of squared operator norms", "operator-product",
              units_of_product(layers)},
             {squared(product.value)},
             {2 * product.value * product.residual},
             layers.reason}};
  }

  static void add(const Found& found, bool finite, ProbeResult& result) {
    Quantity q =
        named(found.naming, found.residual.empty() ? UncertaintyKind::none : UncertaintyKind::residual);
    q.is_vector = found.is_vector;
    const auto number = [](double x) { return std::isfinite(x); };
    const bool there = found.reason.empty() && !found.value.empty() &&
                       std::all_of(found.value.begin(), found.value.end(), number);
    q.status = finite && there                   ? ProbeStatus::ok
               : finite && !found.reason.empty() ? found.without
                                                 : ProbeStatus::nonfinite;
    const size_t entries = std::max<size_t>(1, found.value.size());
    q.value = q.uncertainty = std::vector<double>(entries, kNaN);
    if (q.status == ProbeStatus::ok) {
      q.value = found.value;
      q.uncertainty = found.residual.empty() ? std::vector<double>(entries, 0) : found.residual;
    }
    const auto tell = [&](const std::string& text) {
      result.message += (result.message.empty() ? "" : "; ") + text;
    };
    if (q.status == ProbeStatus::not_resolved) tell(q.name + ": " + found.reason);
    // The same of them all, so it is said once.
    if (q.status == ProbeStatus::unavailable && result.message.find(found.reason) == std::string::npos)
      tell(found.reason);
    if (q.status == ProbeStatus::nonfinite) tell(q.name + " is beyond float64");
    result.quantities.push_back(std::move(q));
  }

  static void record(const NetworkLayers& layers, ProbeResult& result) {
    std::vector<std::string> names;
    for (const NetworkLayer& layer : layers.list) names.push_back(layer.name);
    result.attributes.emplace_back("layers", names);
    result.attributes.emplace_back("logit_factor", layers.logit_factor);
  }

  static constexpr const char* kNoStart = "the run's initial weights (checkpoint start) are not available";
  WeightNormsOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, WeightNormsOptions& options) {
  table.add("by_layer", options.by_layer, anything(), "also per layer, which adds as many columns to tables");
  table.add("operator_norms", options.operator_norms, anything(),
            "also the operator norms of convolutions as maps of images, by Lanczos");
}

std::unique_ptr<Probe> make_weight_norms(const WeightNormsOptions& options) {
  return std::make_unique<WeightNorms>(options);
}

ProbeEntry weight_norms_entry() {
  return probe_entry<WeightNormsOptions, make_weight_norms>({
      .name = "weight_norms",
      .label = "weight norms",
      .help = "norms of weights and layers, distances from initialisation, path norm",
      .version = 1,
      .draws = false,
      .definitions = {"weight-norm", "weight-norm-squared", "distance-from-start", "layer-frobenius",
                      "layer-spectral", "layer-operator", "frobenius-product", "frobenius-sum",
                      "spectral-product", "spectral-sum", "operator-product", "frobenius-over-spectral",
                      "distance-spectral", "path-norm"},
      .entries = {"weight_norm", "squared_weight_norm", "distance_from_start", "layer_frobenius_#",
                  "layer_spectral_#", "layer_operator_#", "frobenius_product", "frobenius_sum",
                  "spectral_product", "spectral_sum", "operator_product", "frobenius_over_spectral",
                  "distance_spectral", "path_norm"},
      .audit = {.cheap = {"by_layer=true", "operator_norms=true"}},
  });
}

}  // namespace basin
