#include "hessian/jacobian.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace basin {

using Tensors = std::vector<at::Tensor>;

Tensors derivative(const Tensors& outputs, const Tensors& inputs, const Tensors& weights, bool create_graph) {
  return torch::autograd::grad(outputs, inputs, weights, /*retain_graph=*/true, create_graph,
                               /*allow_unused=*/true);
}

std::pair<Tensors, Tensors> differentiable(const Tensors& a, const Tensors& b) {
  std::pair<Tensors, Tensors> kept;
  for (size_t i = 0; i < a.size(); ++i) {
    // A parameter that is unused, or in which the output is linear, adds nothing.
    if (!a[i].defined() || !a[i].requires_grad()) continue;
    kept.first.push_back(a[i]);
    kept.second.push_back(b[i]);
  }
  return kept;
}

Jacobian::Jacobian(Tensors parameters, at::Tensor outputs)
    : parameters_(std::move(parameters)),
      outputs_(std::move(outputs)),
      dummy_(at::zeros_like(outputs_).requires_grad_(true)),
      transposed_(derivative({outputs_}, parameters_, {dummy_}, /*create_graph=*/true)) {}

at::Tensor Jacobian::times(const Tensors& v) const {
  const auto [outputs, weights] = differentiable(transposed_, v);
  if (outputs.empty()) return {};
  return derivative(outputs, {dummy_}, weights, /*create_graph=*/false).front();
}

Tensors Jacobian::transposed_times(const at::Tensor& u) const {
  return derivative({outputs_}, parameters_, {u}, /*create_graph=*/false);
}

}  // namespace basin
