#include "optim/steepest_ascent.h"

#include "core/math/tensor_norms.h"

namespace basin {
namespace {

bool is_scaled(ParameterKind kind, AscentScale scale) {
  if (scale == AscentScale::weights)
    return kind == ParameterKind::weight || kind == ParameterKind::norm_weight;
  return scale == AscentScale::all;
}

}  // namespace

Ascent steepest_ascent(const std::vector<ParameterInfo>& parameters, const std::vector<at::Tensor>& gradients,
                       AscentScale scale, double eta) {
  const at::NoGradGuard no_grad;
  Ascent ascent;
  double squared_slope = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor g = gradients[i].to(at::kDouble);
    if (!is_scaled(parameters[i].kind, scale)) {
      squared_slope += squared_norm(g);
      ascent.direction.push_back(g);
      continue;
    }
    const at::Tensor t = parameters[i].tensor.detach().to(at::kDouble).abs().add_(eta);
    const at::Tensor scaled = g.mul(t);
    squared_slope += squared_norm(scaled);
    ascent.direction.push_back(scaled.mul(t));
  }
  ascent.slope = std::sqrt(squared_slope);
  return ascent;
}

}  // namespace basin
