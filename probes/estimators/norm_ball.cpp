#include "probes/estimators/norm_ball.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "core/math/as_matrix.h"

namespace basin {
namespace {

/// U V' without the directions that `matrix` doesn't reach: which ones an SVD gives for those is chance.
at::Tensor polar_factor(const at::Tensor& matrix) {
  const auto [u, s, vh] = at::linalg_svd(matrix, /*full_matrices=*/false);
  const double rounding = matrix.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                              : std::numeric_limits<float>::epsilon();
  const auto longer = static_cast<double>(std::max(matrix.size(0), matrix.size(1)));
  const at::Tensor reached = s.gt(s.max() * (rounding * longer)).to(s.scalar_type());
  return (u * reached).matmul(vh);
}

}  // namespace

at::Tensor NormBall::farthest(const at::Tensor& x) const {
  if (norm_ == DescentNorm::linf) return x.sgn();
  std::vector<at::Tensor> parts = vector_.unflatten(x);
  for (at::Tensor& part : parts) {
    part = has_matrix(part) ? polar_factor(as_matrix(part)).reshape(part.sizes()) : at::zeros_like(part);
  }
  return vector_.flatten(parts);
}

double NormBall::dual_norm(const at::Tensor& x) const {
  if (norm_ == DescentNorm::linf) return x.abs().sum(at::kDouble).item<double>();
  double norm = 0;
  for (const at::Tensor& part : vector_.unflatten(x)) {
    if (has_matrix(part)) norm += at::linalg_svdvals(as_matrix(part)).sum(at::kDouble).item<double>();
  }
  return norm;
}

}  // namespace basin
