// defines: KnownGradients, a linear network whose single gradients are known without any differentiation.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "hessian/objective.h"
#include "tests/support/analytic_models.h"

namespace basin::testing {

/// With mse: g_i = (W x_i - y_i) x_i'.
struct KnownGradients {
  at::Tensor x, labels, w;
  Objective objective;
  explicit KnownGradients(int64_t n = 43)
      : x(sine_numbers({n, 5}, 7)),
        labels(at::arange(n).remainder(3)),
        w(sine_numbers({3, 5}, 90)),
        objective(std::make_shared<LinearModel>(w.clone()), LossKind::mse, x, labels, 10) {}
  at::Tensor gradients() const {
    const at::Tensor residual = x.matmul(w.t()) - at::one_hot(labels, 3);
    return at::einsum("ic,ij->icj", {residual, x}).flatten(1);
  }
};

}  // namespace basin::testing
