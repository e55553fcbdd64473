// defines: kind_of(), what a script's parameter is; redraw(), its initial values.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/csrc/jit/api/module.h>

#include <string>

#include "core/parameter.h"

namespace basin {

/// The class that a module was scripted from, "BatchNorm2d".
std::string class_of(const torch::jit::Module& module);

/// docs/your-network.md#kinds.
ParameterKind kind_of(const torch::jit::Module& module, const std::string& name, const at::Tensor& parameter);

/// Draws it as PyTorch's own constructors do: weights and biases of convolutions and linear layers U(-1/sqrt(fan_in), 1/sqrt(fan_in)),
/// fan_in of the weight; embeddings N(0, 1); a norm's weight 1 and bias 0. False, and nothing drawn, for a class that it doesn't know.
bool redraw(const torch::jit::Module& module, const std::string& name, at::Tensor parameter,
            at::Generator& generator);

}  // namespace basin
