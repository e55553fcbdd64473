// defines: LayerSums, numbers by parameter or parameter tensor added up by layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "hessian/parameter_vector.h"

namespace basin {

/// Layers in the order of their first parameters.
class LayerSums {
 public:
  explicit LayerSums(const ParameterVector& vector);
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  /// [n, tensors] -> [n, layers]
  at::Tensor of_tensors(const at::Tensor& by_tensor) const;
  /// [parameters] -> [layers]
  at::Tensor of_parameters(const at::Tensor& flat) const;

 private:
  const ParameterVector& vector_;
  std::vector<std::string> names_;
  at::Tensor layer_;  // of each tensor
};

}  // namespace basin
