// defines: DenseNoise, single gradients and Hessian of a tiny objective as matrices.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hessian/objective.h"

namespace basin::testing {

/// From first gradients of batches alone: one example at a time, and central differences of the mean
/// gradient, whose error is 1e-10 of the third derivatives for a step of 1e-5. Leaves the weights as they
/// were.
struct DenseNoise {
  at::Tensor g, h;  // [n, d], [d, d]

  explicit DenseNoise(Objective& objective) {
    std::vector<at::Tensor> rows, columns;
    for (int64_t i = 0; i < objective.examples(); ++i)
      rows.push_back(objective.gradient_over(at::full({1}, i, at::kLong)));
    g = at::stack(rows);
    const ScopedParameters saved(objective.parameters());
    const double step = 1e-5;
    for (const at::Tensor& unit : at::eye(objective.parameters().size(), at::kDouble).unbind()) {
      objective.parameters().scatter(saved.saved() + step * unit);
      const at::Tensor above = objective.gradient();
      objective.parameters().scatter(saved.saved() - step * unit);
      columns.push_back((above - objective.gradient()) / (2 * step));
    }
    h = at::stack(columns);
    h = (h + h.t()) / 2;
  }
  double n() const { return static_cast<double>(g.size(0)); }
  at::Tensor mean() const { return g.mean(0); }
  /// C, with 1/n.
  at::Tensor covariance() const { return (g - mean()).t().mm(g - mean()) / n(); }
  double mean_curvature() const { return mean().dot(h.mv(mean())).item<double>(); }
  /// tr(HC)
  double product_trace() const { return (h * covariance()).sum().item<double>(); }
};

}  // namespace basin::testing
