// defines: gradients_of(), the gradients of single examples by what a layer was called with; plain_gradients().
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "hessian/gradients/example_gradients.h"
#include "models/layers/layer_calls.h"

namespace basin {

/// Gradients that are known one by one: g [m, ...], of a parameter of these sizes.
std::unique_ptr<ExampleGradients> plain_gradients(const at::Tensor& g, at::IntArrayRef sizes);

struct ParameterGradients {
  at::Tensor parameter;
  std::unique_ptr<ExampleGradients> gradients;
};

/// The gradients of the trained parameters of `call`, given the gradients `delta` of sum_i loss_i by its output.
/// Not for batch_statistics.
std::vector<ParameterGradients> gradients_of(const LayerCall& call, const at::Tensor& delta);

}  // namespace basin
