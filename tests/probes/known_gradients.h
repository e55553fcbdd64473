// defines: KnownGradients, a linear network whose single gradients are known without any differentiation; row_groups().
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "hessian/objective.h"
#include "probes/estimators/noise_estimate.h"
#include "tests/support/analytic_models.h"

namespace basin::testing {

/// With mse: g_i = (W x_i - y_i) x_i'.
struct KnownGradients {
  at::Tensor x, labels, w;
  Objective objective;
  explicit KnownGradients(int64_t n = 43) : KnownGradients(sine_numbers({n, 5}, 7)) {}
  /// Sines of multiples of one angle have rank 2; other inputs [n, 5] don't.
  explicit KnownGradients(const at::Tensor& inputs)
      : x(inputs),
        labels(at::arange(inputs.size(0)).remainder(3)),
        w(sine_numbers({3, 5}, 90)),
        objective(std::make_shared<LinearModel>(w.clone()), LossKind::mse, x, labels, 10) {}
  at::Tensor gradients() const {
    const at::Tensor residual = x.matmul(w.t()) - at::one_hot(labels, 3);
    return at::einsum("ic,ij->icj", {residual, x}).flatten(1);
  }
};

/// Groups of gradients that are the rows of a matrix, one after another.
inline GradientGroups row_groups(const at::Tensor& g, int64_t group_size = 1) {
  GradientGroups groups;
  groups.examples = g.size(0);
  groups.group_size = group_size;
  groups.group = [g, group_size](int64_t j) { return g.narrow(0, j * group_size, group_size).mean(0); };
  groups.rest = [g, group_size] {
    const int64_t rest = g.size(0) % group_size;
    return g.narrow(0, g.size(0) - rest, rest).mean(0);
  };
  return groups;
}

}  // namespace basin::testing
