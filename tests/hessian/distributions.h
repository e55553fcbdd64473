// defines: wasserstein(), the distance between quadratures and the eigenvalues that they stand for.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hessian/quadrature.h"

namespace basin::testing {

/// Integral of |difference of distribution functions| between the quadratures' mean and the true eigenvalues.
inline double wasserstein(const std::vector<Quadrature>& starts, const at::Tensor& eigenvalues) {
  std::vector<std::pair<double, double>> steps;  // position, jump of (estimate - truth)
  for (const Quadrature& q : starts) {
    for (size_t j = 0; j < q.nodes.size(); ++j) steps.emplace_back(q.nodes[j], q.weights[j] / starts.size());
  }
  for (int64_t i = 0; i < eigenvalues.numel(); ++i)
    steps.emplace_back(eigenvalues[i].item<double>(), -1.0 / static_cast<double>(eigenvalues.numel()));
  std::sort(steps.begin(), steps.end());
  double distance = 0, height = 0;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    height += steps[i].second;
    distance += std::abs(height) * (steps[i + 1].first - steps[i].first);
  }
  return distance;
}

}  // namespace basin::testing
