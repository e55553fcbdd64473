// defines: WeightCopy, a second set of a run's weights: kept next to the model and, by name, in checkpoints.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/parameter.h"

namespace basin {

/// One tensor per parameter, in its type, place and strides; begins as the parameters are now.
class WeightCopy {
 public:
  /// `what` is its name in errors: "average".
  WeightCopy(const std::vector<ParameterInfo>& parameters, std::string what);

  /// copy <- copy + share (parameter - copy), share in [0, 1].
  void approach(double share);
  /// Into the parameters, in place: addresses that CUDA graphs know stay good.
  void put_back() const;
  const std::vector<at::Tensor>& tensors() const { return tensors_; }

  /// By the parameters' names; copies on the CPU.
  NamedTensors state() const;
  /// IoError where a name is missing or a shape differs.
  void load_state(const NamedTensors& state);

 private:
  std::vector<ParameterInfo> parameters_;
  std::string what_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace basin
