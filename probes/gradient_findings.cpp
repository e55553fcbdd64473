#include "probes/gradient_findings.h"

#include <ATen/ATen.h>

#include "hessian/gradients/per_example_gradients.h"
#include "probes/estimators/percentile.h"

namespace basin {
namespace {

/// Sums over single gradients, by layer, float64 on the CPU.
struct Measured {
  at::Tensor squared_norms, along_mean;  // [n, layers]
  at::Tensor mean_square;                // [layers]: |G|^2
  at::Tensor ratio, counted, influence;  // [layers], [layers], [n, layers]; undefined where not asked for
};

Measured measured(Problem& problem, const LayerSums& layers, bool with_signal) {
  const auto on_cpu = [](const at::Tensor& numbers) { return numbers.to(at::kCPU); };
  PerExampleGradients gradients(problem);
  const ExampleSums sums = gradients.sums(/*squares=*/with_signal);
  Measured m;
  m.squared_norms = layers.of_tensors(on_cpu(sums.squared_norms));
  m.mean_square = layers.of_parameters(on_cpu(sums.mean.square()));
  std::vector<ExampleWeights> weights{{sums.mean}};
  if (with_signal) {
    const double rounding = problem.dtype() == at::kDouble ? 1e-14 : 1e-6;  // sums of some hundred terms
    const SignalToNoise signal = signal_to_noise(sums.mean, sums.mean_square, rounding);
    m.ratio = layers.of_parameters(on_cpu(signal.ratio));
    m.counted = layers.of_parameters(on_cpu(signal.counted));
    weights.push_back(signal.influence);
  }
  const std::vector<at::Tensor> products = gradients.products(weights);
  m.along_mean = layers.of_tensors(on_cpu(products.front()));
  if (with_signal) m.influence = layers.of_tensors(on_cpu(products.back()));
  return m;
}

GradientNoise noise_of(const at::Tensor& squared_norms, const at::Tensor& along_mean,
                       const at::Tensor& mean_square, int64_t set_examples) {
  const ExampleProducts products = example_products(squared_norms, along_mean, mean_square.item<double>());
  return {estimate_noise(products, set_examples), squared_norms.mean().item<double>()};
}

/// Means of the ratio over all parameters, over the layers' means, and over each layer's parameters.
void find_signal(const Measured& m, int64_t set_examples, GradientFindings& found) {
  const auto mean_by = [&](const at::Tensor& weights) {
    return estimate_signal_to_noise(m.ratio.dot(weights).item<double>(), m.influence.mv(weights),
                                    set_examples);
  };
  found.counted = static_cast<int64_t>(m.counted.sum().item<double>());
  if (found.counted == 0) return;
  const at::Tensor has = m.counted.gt(0).to(at::kDouble), share = has / m.counted.clamp_min(1);
  found.over_parameters = mean_by(at::ones_like(m.counted) / static_cast<double>(found.counted));
  found.over_layers = mean_by(share / has.sum());
  const at::Tensor alone = at::eye(m.counted.size(0), at::kDouble);
  for (int64_t l = 0; l < m.counted.size(0); ++l) {
    if (has[l].item<double>() > 0) found.of_layers[l] = mean_by(alone[l] * share[l]);
  }
}

void find_percentiles(const at::Tensor& squared_norms, const std::vector<int64_t>& percentiles,
                      int64_t set_examples, GradientFindings& found) {
  std::vector<double> norms = to_doubles(squared_norms.sqrt());
  std::sort(norms.begin(), norms.end());
  for (size_t i = 0; i < percentiles.size(); ++i)
    found.percentiles[i] = percentile_of(norms, static_cast<double>(percentiles[i]), set_examples);
}

GradientFindings nothing_found(const GradientStatisticsOptions& options, int64_t layers) {
  GradientFindings found;
  found.over_parameters = found.over_layers = {no_estimate(), no_estimate()};
  found.layers.resize(layers);
  found.of_layers.resize(layers, found.over_parameters);
  found.percentiles.resize(options.percentiles.size(), no_estimate());
  return found;
}

}  // namespace

GradientFindings gradient_findings(const GradientStatisticsOptions& options, const ProbeContext& context,
                                   const LayerSums& layers) {
  GradientFindings found = nothing_found(options, layers.size());
  if (context.problem.examples() < kLeastGroups) return found;
  const int64_t set = context.train_examples;
  const Measured m = measured(context.problem, layers, options.signal_to_noise);
  const at::Tensor squared_norms = m.squared_norms.sum(1);
  const GradientNoise whole = noise_of(squared_norms, m.along_mean.sum(1), m.mean_square.sum(), set);
  found.finite = whole.estimate.all_finite;
  if (!found.finite) return found;
  found.whole = whole;
  find_percentiles(squared_norms, options.percentiles, set, found);
  if (options.signal_to_noise) find_signal(m, set, found);
  for (int64_t l = 0; options.by_layer && l < layers.size(); ++l) {
    found.layers[l] =
        noise_of(m.squared_norms.select(1, l), m.along_mean.select(1, l), m.mean_square[l], set);
  }
  return found;
}

}  // namespace basin
