#include "probes/estimators/network_layers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hessian/gradients/graph_leaves.h"
#include "models/layers/layer_calls.h"
#include "models/scoped_norm_mode.h"

namespace basin {
namespace {

bool is_linear_map(const LayerCall& call) {
  return call.kind == LayerCall::Kind::convolution || call.kind == LayerCall::Kind::linear;
}

/// The trained weight that a layer's is made of: itself, or with a norm's scale. parameters.size() for none.
size_t place_of_weight(const std::vector<ParameterInfo>& parameters, const at::Tensor& weight) {
  const auto leaves = uses_of_leaves(weight);
  const auto made_of = [&](const ParameterInfo& p) {
    return p.kind == ParameterKind::weight &&
           (weight.is_same(p.tensor) || leaves.count(p.tensor.unsafeGetTensorImpl()) > 0);
  };
  return static_cast<size_t>(std::find_if(parameters.begin(), parameters.end(), made_of) -
                             parameters.begin());
}

/// Every trained weight enters the network through one of the layers.
std::string reason_of(const std::vector<ParameterInfo>& parameters, const NetworkLayers& layers) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool known = std::any_of(layers.list.begin(), layers.list.end(),
                                   [&](const NetworkLayer& layer) { return layer.parameter == i; });
    if (parameters[i].kind == ParameterKind::weight && !known)
      return parameters[i].name + " enters the network outside of convolutions and linear layers";
  }
  return "";
}

}  // namespace

double logit_factor(const at::Tensor& logits, const at::Tensor& outputs) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (logits.sizes() != outputs.sizes()) return none;
  const at::Tensor f = logits.to(at::kDouble), y = outputs.to(at::kDouble);
  const double squares = y.square().sum().item<double>();
  const double factor = squares > 0 ? (f * y).sum().item<double>() / squares : 1;
  // Both are the same sums, in float32 within some 1e-6 of their largest terms.
  const double off = (f - y * factor).abs().max().item<double>();
  return off <= 1e-4 * f.abs().max().item<double>() ? factor : none;
}

NetworkLayers network_layers(Objective& objective) {
  const ScopedNormMode folded(objective.model(), NormMode::folded);
  const at::AutoGradMode record(true);
  const LayerCalls noted;
  const at::Tensor logits = objective.logits(0, 1);
  const std::vector<ParameterInfo>& parameters = objective.parameters().parameters();
  NetworkLayers layers;
  at::Tensor outputs = at::empty({0});
  for (const LayerCall& call : noted.list()) {
    if (!is_linear_map(call)) continue;
    const bool linear = call.kind == LayerCall::Kind::linear;
    outputs = linear ? at::linear(call.x, call.weight, call.bias).detach() : at::empty({0});
    const size_t place = place_of_weight(parameters, call.weight);
    if (place == parameters.size()) continue;
    layers.list.push_back({parameters[place].layer, place, call.weight.detach().to(at::kCPU, at::kDouble),
                           call.x.sizes().slice(1).vec(), call.stride, call.padding});
  }
  layers.logit_factor = logit_factor(logits.detach(), outputs);
  layers.reason = reason_of(parameters, layers);
  return layers;
}

}  // namespace basin
