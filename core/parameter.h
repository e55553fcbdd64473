// defines: ParameterInfo, a named parameter with its layer and kind; NamedTensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace basin {

enum class ParameterKind { weight, bias, norm_weight, norm_bias };

/// "weight", "bias", "norm_weight", "norm_bias": the names used in files and exclusion lists.
const char* to_string(ParameterKind kind);
ParameterKind parameter_kind(const std::string& name);  // ConfigError for anything else

struct ParameterInfo {
  std::string name;   // "conv1.weight", unique
  std::string layer;  // "conv1"
  ParameterKind kind = ParameterKind::weight;
  at::Tensor tensor;  // the leaf itself, requires_grad
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace basin
