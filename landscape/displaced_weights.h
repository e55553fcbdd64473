// defines: DisplacedWeights, which displaces a network's weights and restores them.
#pragma once

#include <ATen/core/Tensor.h>

#include "hessian/parameter_vector.h"

namespace basin {

/// Every measure that asks for the loss around w moves the weights through this. They are back, bit for bit,
/// when it goes out of scope, however that comes about. Outlived by the vector.
///
/// Memory: a copy of the weights and one in float64.
class DisplacedWeights {
 public:
  explicit DisplacedWeights(const ParameterVector& vector);

  /// w, flat, float64, on the weights' device.
  const at::Tensor& origin() const { return origin_; }
  /// To w + step, summed in float64 and rounded to the weights' type. A float32 weight holds a step to 6e-8
  /// |w_i|: one smaller than that is lost.
  void move(const at::Tensor& step) const;
  /// To w, bit for bit.
  void put_back() const { vector_.scatter(saved_.saved()); }

 private:
  const ParameterVector& vector_;
  ScopedParameters saved_;
  at::Tensor origin_;
};

}  // namespace basin
