// defines: networks whose loss, gradient and Hessian are known in closed form.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "models/layers/layer_calls.h"
#include "models/model.h"

namespace basin::testing {

/// logits = X W' without bias, W [classes, features]; an unused parameter rides along when asked for.
/// With mse the loss is quadratic: H = I (x) X'X/n. With cross entropy H = 1/n sum_i (diag(p_i) - p_i p_i')
/// (x) x_i x_i'.
class LinearModel final : public Model {
 public:
  explicit LinearModel(at::Tensor weight, bool unused = false)
      : weight_(add_parameter("fc", "weight", ParameterKind::weight, std::move(weight))) {
    if (unused)
      add_parameter("spare", "weight", ParameterKind::weight,
                    at::ones({2}, weight_.options().requires_grad(false)));
  }
  at::Tensor forward(const at::Tensor& images) override { return linear_map(images.flatten(1), weight_, {}); }

 private:
  at::Tensor weight_;
};

/// Smooth numbers of no particular structure, the same in any language: sin(1 + 3 i) / 2, i = 0, 1, ...
inline at::Tensor sine_numbers(at::IntArrayRef shape, double first = 0) {
  const int64_t n = c10::multiply_integers(shape);
  return at::sin(at::arange(n, at::kDouble).add_(first).mul_(3).add_(1)).mul_(0.5).reshape(shape);
}

}  // namespace basin::testing
