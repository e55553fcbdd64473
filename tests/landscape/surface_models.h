// defines: networks whose loss surface is known in closed form.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

#include "models/layers.h"
#include "tests/support/analytic_models.h"

namespace basin::testing {

/// With loss mse and label 0 everywhere: L(x, y) = a x^2 + b y^2 + c x + c^2 / (4 a), whatever the images.
/// Both numbers are one weight tensor [1, 2].
class BowlModel final : public Model {
 public:
  BowlModel(double a, double b, double c, double x = 0, double y = 0)
      : weight_(add_parameter("bowl", "weight", ParameterKind::weight,
                              at::tensor({x, y}, at::kDouble).reshape({1, 2}))),
        slope_(at::tensor({std::sqrt(2 * a), std::sqrt(2 * b)}, at::kDouble)),
        shift_(at::tensor({std::sqrt(2 * a) * c / (2 * a) + 1, 0.0}, at::kDouble)) {}
  at::Tensor forward(const at::Tensor& images) override {
    return (weight_ * slope_ + shift_).expand({images.size(0), 2});
  }

 private:
  at::Tensor weight_, slope_, shift_;
};

/// x -> linear(x) -> batch normalisation -> logits.
class NormalisedLinearModel final : public Model {
 public:
  explicit NormalisedLinearModel(at::Generator generator)
      : linear_(Builder{*this, generator}, "fc", 4, 3),
        norm_(Builder{*this, generator}, "norm", 3, NormKind::batch, 1) {}
  at::Tensor forward(const at::Tensor& images) override { return norm_.after(linear_, images.flatten(1)); }

 private:
  Linear linear_;
  Norm norm_;
};

}  // namespace basin::testing
