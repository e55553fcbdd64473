#include "landscape/displaced_weights.h"

#include <ATen/ATen.h>

namespace basin {

DisplacedWeights::DisplacedWeights(const ParameterVector& vector)
    : vector_(vector), saved_(vector), origin_(saved_.saved().to(at::kDouble)) {}

void DisplacedWeights::move(const at::Tensor& step) const {
  vector_.scatter((origin_ + step.to(origin_.device(), at::kDouble)).to(saved_.saved().scalar_type()));
}

}  // namespace basin
