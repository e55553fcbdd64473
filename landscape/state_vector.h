// defines: StateVector, a network's weights and buffers as one flat vector.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "hessian/parameter_vector.h"
#include "io/checkpoint.h"
#include "models/model.h"

namespace basin {

/// Parameters in parameter_table() order, then buffers (running statistics, frozen weights) in buffer_table()
/// order: all that makes the function. Always float64, on the model's device, whatever the model's type, so
/// that points between networks are computed in float64 and rounded once.
class StateVector {
 public:
  explicit StateVector(Model& model);

  int64_t size() const { return parameters_.size() + buffer_size_; }
  /// How many of them are parameters; the others come behind.
  int64_t parameter_size() const { return parameters_.size(); }
  const ParameterVector& parameters() const { return parameters_; }
  at::Device device() const;

  at::Tensor gather() const;
  /// A checkpoint's state; IoError naming `file` where it is another network's.
  at::Tensor of(const Checkpoint& checkpoint, const std::string& file) const;
  /// Rounds to the model's type. Without `running_statistics` these stay as they are.
  void scatter(const at::Tensor& state, bool running_statistics) const;

 private:
  ParameterVector parameters_;
  NamedTensors buffers_;
  int64_t buffer_size_ = 0;
};

}  // namespace basin
