// defines: ParameterVector, a flat view of a model's parameters; ScopedParameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/parameter.h"

namespace basin {

/// Gathers and scatters parameters (or their gradients) as one flat vector, in parameter_table() order,
/// row-major contiguous whatever the memory format of the tensors.
class ParameterVector {
 public:
  explicit ParameterVector(std::vector<ParameterInfo> parameters);
  int64_t size() const { return size_; }
  const std::vector<ParameterInfo>& parameters() const { return parameters_; }
  std::vector<at::Tensor> tensors() const;

  at::Tensor gather() const;                                        // copy of the parameters, flat
  void scatter(const at::Tensor& flat) const;                       // writes them, no gradient recorded
  at::Tensor flatten(const std::vector<at::Tensor>& like) const;    // undefined tensors count as zeros
  std::vector<at::Tensor> unflatten(const at::Tensor& flat) const;  // views shaped as the parameters

 private:
  std::vector<ParameterInfo> parameters_;
  int64_t size_ = 0;
};

/// Restores the parameters on destruction.
class ScopedParameters {
 public:
  explicit ScopedParameters(const ParameterVector& vector) : vector_(vector), saved_(vector.gather()) {}
  ~ScopedParameters() { vector_.scatter(saved_); }
  ScopedParameters(const ScopedParameters&) = delete;
  ScopedParameters& operator=(const ScopedParameters&) = delete;
  const at::Tensor& saved() const { return saved_; }

 private:
  const ParameterVector& vector_;
  at::Tensor saved_;
};

}  // namespace basin
