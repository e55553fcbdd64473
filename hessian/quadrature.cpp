#include "hessian/quadrature.h"

#include <ATen/ATen.h>

#include <Eigen/Eigenvalues>

#include "core/interrupt.h"
#include "core/statistics.h"
#include "core/tensor_norms.h"
#include "hessian/krylov_basis.h"

namespace basin {
Quadrature quadrature_of(const Eigen::MatrixXd& tridiagonal) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(tridiagonal);
  Quadrature result;
  for (int64_t j = 0; j < tridiagonal.rows(); ++j) {
    const double first = eigen.eigenvectors()(0, j);
    result.nodes.push_back(eigen.eigenvalues()[j]);
    result.weights.push_back(first * first);
  }
  return result;
}

Quadrature lanczos_quadrature(LinearOperator& op, const at::Tensor& start, int64_t steps,
                              at::Tensor* first_product) {
  const int64_t most = std::min(steps, op.size());
  KrylovBasis basis(most, op.size(), at::TensorOptions(op.dtype()).device(op.device()),
                    /*keep_products=*/false);
  Eigen::MatrixXd t = Eigen::MatrixXd::Zero(most, most);
  at::Tensor v = start.to(op.device(), op.dtype(), false, /*copy=*/true);
  v.div_(norm_of(v));
  double radius = 0;
  while (true) {
    throw_if_interrupted();
    at::Tensor w = op.apply(v).detach();
    if (first_product && basis.size() == 0) *first_product = w.clone();
    basis.append(v);
    const int64_t m = basis.size();
    t(m - 1, m - 1) = dot64(v, w);
    basis.project_out(w);
    const double beta = norm_of(w);
    if (!std::isfinite(beta)) return {};
    radius = std::max(radius, std::abs(t(m - 1, m - 1)) + beta);
    if (m == most || beta <= 1e-12 * radius) return quadrature_of(t.topLeftCorner(m, m));
    t(m - 1, m) = t(m, m - 1) = beta;
    v = w.div_(beta);
  }
}

double Quadrature::moment(int power) const {
  double sum = 0;
  for (size_t j = 0; j < nodes.size(); ++j) sum += weights[j] * std::pow(nodes[j], power);
  return sum;
}

double Quadrature::mass_above(double threshold) const {
  double sum = 0;
  for (size_t j = 0; j < nodes.size(); ++j) sum += nodes[j] > threshold ? weights[j] : 0;
  return sum;
}

SpectralDensity spectral_density(const std::vector<Quadrature>& starts, double width, int64_t points) {
  SpectralDensity result;
  result.width = width;
  double low = INFINITY, high = -INFINITY;
  for (const Quadrature& start : starts) {
    for (const double node : start.nodes) low = std::min(low, node), high = std::max(high, node);
  }
  for (int64_t i = 0; i < points; ++i) {
    const double x = low - 4 * width + (high - low + 8 * width) * static_cast<double>(i) / (points - 1.0);
    std::vector<double> samples;
    for (const Quadrature& start : starts) {
      double sum = 0;
      for (size_t j = 0; j < start.nodes.size(); ++j) {
        const double z = (x - start.nodes[j]) / width;
        sum += start.weights[j] * std::exp(-0.5 * z * z) / (width * std::sqrt(2 * M_PI));
      }
      samples.push_back(sum);
    }
    const SampleMean estimate = mean_of(samples);
    result.grid.push_back(x);
    result.density.push_back(estimate.value);
    result.standard_error.push_back(estimate.standard_error);
  }
  return result;
}

}  // namespace basin
