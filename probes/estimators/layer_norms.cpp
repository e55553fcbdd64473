#include "probes/estimators/layer_norms.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/math/nan.h"
#include "hessian/lanczos.h"
#include "hessian/linear_operator.h"
#include "models/layers/layer_map.h"
#include "models/scoped_norm_mode.h"

namespace basin {
namespace {

/// Logits of up to 8 examples of the network without its biases, the first layer's input times `scale`.
at::Tensor logits_without_biases(Objective& objective, double scale) {
  LayerMap map([&](LayerMap::Arguments layer, int64_t call) {
    if (call == 0) layer.x = layer.x * scale;
    if (layer.bias.defined()) layer.bias = at::zeros_like(layer.bias);
    return layer;
  });
  return objective.logits(0, std::min<int64_t>(8, objective.examples())).to(at::kDouble);
}

bool positively_homogeneous(Objective& objective) {
  const double scale = 1024;  // exact in any type, and out of where a smooth activation is linear
  const at::Tensor once = logits_without_biases(objective, 1) * scale,
                   scaled = logits_without_biases(objective, scale);
  return (scaled - once).norm().item<double>() <= 1e-4 * scaled.norm().item<double>();
}

/// Sum of the logits at an image of ones, all weights and biases squared.
double sum_over_paths(Objective& objective) {
  LayerMap squared([](LayerMap::Arguments layer, int64_t call) {
    const at::Tensor x = call == 0 ? at::ones_like(layer.x) : layer.x;
    const auto square = [](const at::Tensor& t) { return t.defined() ? t.to(at::kDouble).square() : t; };
    return LayerMap::Arguments{x.to(at::kDouble), square(layer.weight), square(layer.bias)};
  });
  return objective.logits(0, 1).sum().item<double>();
}

/// A' A of a convolution A without bias.
class SquaredConvolution {
 public:
  explicit SquaredConvolution(const NetworkLayer& layer) : layer_(layer) {}
  int64_t size() const { return layer_.input[0] * layer_.input[1] * layer_.input[2]; }
  at::Tensor operator()(const at::Tensor& flat) const {
    const std::vector<int64_t>& in = layer_.input;
    const at::Tensor y =
        at::conv2d(flat.view({1, in[0], in[1], in[2]}), layer_.weight, {}, layer_.stride, layer_.padding);
    // Rows and columns that the stride leaves out at the far end belong to the input all the same.
    const std::vector<int64_t> left{in[1] - spanned(y.size(2), 2), in[2] - spanned(y.size(3), 3)};
    const at::IntArrayRef stride(layer_.stride), padding(layer_.padding);
    return at::conv_transpose2d(y, layer_.weight, {}, stride, padding, left).flatten();
  }

 private:
  int64_t spanned(int64_t outputs, int64_t axis) const {
    return (outputs - 1) * layer_.stride - 2 * layer_.padding + layer_.weight.size(axis);
  }
  const NetworkLayer& layer_;
};

}  // namespace

SpectralNorm spectral_norm(const at::Tensor& weight) {
  const at::Tensor whole = weight.detach().to(at::kCPU, at::kDouble).flatten(1);
  const at::Tensor w = whole.size(0) <= whole.size(1) ? whole : whole.t();
  const at::Tensor u = std::get<1>(at::linalg_eigh(w.matmul(w.t()))).select(1, -1);
  const at::Tensor along = at::mv(w.t(), u);
  const double value = along.norm().item<double>();
  if (value == 0) return {0, 0};
  return {value, (at::mv(w, along / value) - u * value).norm().item<double>()};
}

SpectralNorm operator_norm(const NetworkLayer& layer, uint64_t seed) {
  if (!layer.convolution()) return spectral_norm(layer.weight);
  const SquaredConvolution squared(layer);
  FunctionOperator op(squared.size(), at::kDouble, squared);
  TopEigenOptions options;
  options.smallest = 0;
  options.tolerance = 1e-8;
  options.seed = seed;
  const TopEigenResult found = lanczos_eigenpairs(op, options);
  if (found.largest.empty()) return {kNaN, kNaN};
  const Eigenpair& pair = found.largest.front();
  const double value = std::sqrt(std::max(pair.value, 0.0));
  return {value, value > 0 ? pair.residual / value : 0};
}

SpectralNorm product_of(const std::vector<SpectralNorm>& norms) {
  double product = 1, relative = 0;
  for (const SpectralNorm& norm : norms) {
    product *= norm.value;
    if (norm.value > 0) relative += norm.residual / norm.value;
  }
  return {product, product * relative};
}

NormOrReason path_norm(Objective& objective, const NetworkLayers& layers) {
  if (!layers.reason.empty()) return {kNaN, layers.reason};
  if (std::isnan(layers.logit_factor))
    return {kNaN, "the logits are not a multiple of the last layer's outputs"};
  const ScopedNormMode folded(objective.model(), NormMode::folded);
  if (!positively_homogeneous(objective))
    return {kNaN, "an activation other than ReLU, or normalisation by example"};
  // The factor on the logits is in the sum once, and is a weight to be squared.
  return {std::sqrt(sum_over_paths(objective) * layers.logit_factor), ""};
}

}  // namespace basin
