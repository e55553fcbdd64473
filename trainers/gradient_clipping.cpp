#include "trainers/gradient_clipping.h"

#include "core/math/tensor_norms.h"

namespace basin {

ClippedGradients clip_gradients(const std::vector<ParameterInfo>& parameters, double limit) {
  ClippedGradients clipped;
  if (limit == 0) return clipped;
  double squares = 0;
  for (const ParameterInfo& parameter : parameters) {
    clipped.norms.push_back(norm_of(parameter.tensor.grad()));
    squares += clipped.norms.back() * clipped.norms.back();
  }
  const double norm = std::sqrt(squares);
  if (!(norm > limit)) return clipped;
  clipped.factor = limit / norm;
  for (const ParameterInfo& parameter : parameters) at::Tensor(parameter.tensor.grad()).mul_(clipped.factor);
  return clipped;
}

}  // namespace basin
