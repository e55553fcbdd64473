#include "trainers/workers/gaussian_product.h"

#include <ATen/ATen.h>

namespace basin {
namespace {

constexpr double kRidge = 1e-6, kRank = 1e-10;  // of the mean variance; of the largest eigenvalue

/// Orthonormal columns along which the rows of `deviations` have most of their squares, from the small matrix of inner products.
at::Tensor principal_directions(const at::Tensor& deviations, int64_t most) {
  const auto [values, vectors] = at::linalg_eigh(deviations.mm(deviations.t()));
  const int64_t rows = values.numel();
  const double largest = values[rows - 1].item<double>();
  int64_t count = 0;
  while (count < std::min(most, rows) && largest > 0 &&
         values[rows - 1 - count].item<double>() > kRank * largest)
    ++count;
  const at::Tensor kept = vectors.slice(1, rows - count, rows),
                   scales = values.slice(0, rows - count, rows).sqrt();
  return deviations.t().mm(kept) / scales;
}

}  // namespace

GaussianProduct gaussian_product(const std::vector<at::Tensor>& samples, int64_t directions) {
  std::vector<at::Tensor> means, deviations;
  int64_t fewest = INT64_MAX;
  for (const at::Tensor& chain : samples) {
    means.push_back(chain.mean(0));
    deviations.push_back(chain - means.back());
    fewest = std::min(fewest, chain.size(0));
  }
  const at::Tensor mean = at::stack(means).mean(0);
  const at::Tensor u = principal_directions(at::cat(deviations), std::min(directions, fewest - 1));
  const int64_t d = u.size(1);
  if (d == 0) return {mean, 0};
  at::Tensor precision = at::zeros({d, d}, at::kDouble), weighted = at::zeros({d}, at::kDouble);
  for (size_t c = 0; c < samples.size(); ++c) {
    const at::Tensor along = deviations[c].mm(u);
    const at::Tensor covariance = along.t().mm(along) / static_cast<double>(along.size(0) - 1);
    if (covariance.trace().item<double>() == 0) return {mean, 0};
    const at::Tensor ridge = at::eye(d, at::kDouble) * (kRidge * covariance.trace() / static_cast<double>(d));
    const at::Tensor inverse = at::linalg_inv(covariance + ridge);
    precision += inverse;
    weighted += inverse.mv(u.t().mv(means[c] - mean));
  }
  return {mean + u.mv(at::linalg_solve(precision, weighted)), d};
}

}  // namespace basin
