#include "landscape/trajectory_plane.h"

#include <ATen/ATen.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "core/error.h"
#include "core/math/tensor_norms.h"

namespace basin {
namespace {

// As a share of the largest eigenvalue: below this a direction is rounding of the float32 weights.
constexpr double kSmallest = 1e-12;

Eigen::MatrixXd gram_matrix(const std::vector<at::Tensor>& steps) {
  const auto k = static_cast<Eigen::Index>(steps.size());
  Eigen::MatrixXd gram(k, k);
  for (Eigen::Index i = 0; i < k; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      gram(i, j) = gram(j, i) = inner_product(steps[static_cast<size_t>(i)], steps[static_cast<size_t>(j)]);
    }
  }
  return gram;
}

at::Tensor combination(const std::vector<at::Tensor>& states, const at::Tensor& centre,
                       const Eigen::VectorXd& weights) {
  at::Tensor sum = at::zeros_like(centre);
  for (size_t i = 0; i < states.size(); ++i)
    sum.add_(states[i] - centre, weights(static_cast<Eigen::Index>(i)));
  return sum;
}

}  // namespace

at::Tensor mean_state(const std::vector<at::Tensor>& states) {
  at::Tensor sum = at::zeros_like(states.at(0));
  for (const at::Tensor& state : states) sum.add_(state);
  return sum.div_(static_cast<double>(states.size()));
}

TrajectoryPlane trajectory_plane(const std::vector<at::Tensor>& states, const at::Tensor& centre,
                                 int64_t measured, size_t dimension) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> steps;
  for (const at::Tensor& state : states)
    steps.push_back((state - centre).narrow(0, 0, measured).to(at::kCPU).contiguous());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram_matrix(steps));
  const Eigen::VectorXd eigenvalues = solver.eigenvalues().reverse();  // falling
  const auto last = static_cast<Eigen::Index>(dimension) - 1;
  if (last >= eigenvalues.size() || !(eigenvalues(last) > kSmallest * eigenvalues(0))) {
    throw ConfigError(fmt::format(
        "a path of {} checkpoints doesn't span {} directions: more checkpoints are needed (checkpoint_every)",
        states.size(), dimension));
  }
  TrajectoryPlane plane{AffineFrame(centre, measured), {}, {}};
  for (size_t m = 0; m < dimension; ++m) {
    const auto column = static_cast<Eigen::Index>(m);
    Eigen::VectorXd weights =
        solver.eigenvectors().col(eigenvalues.size() - 1 - column) / std::sqrt(eigenvalues(column));
    // The first checkpoint's coordinate is s_m times its weight; where that is 0 the largest weight decides.
    Eigen::Index largest = 0;
    weights.cwiseAbs().maxCoeff(&largest);
    const double decisive =
        std::abs(weights(0)) > 1e-9 * std::abs(weights(largest)) ? weights(0) : weights(largest);
    if (decisive < 0) weights = -weights;
    plane.frame.add_direction(combination(states, centre, weights));
  }
  const double total = eigenvalues.cwiseMax(0).sum();
  for (const double value : eigenvalues) plane.share.push_back(std::max(0.0, value) / total);
  for (const at::Tensor& state : states) plane.path.push_back(plane.frame.project(state));
  return plane;
}

}  // namespace basin
