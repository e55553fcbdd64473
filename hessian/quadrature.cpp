#include "hessian/quadrature.h"

#include <ATen/ATen.h>

#include <Eigen/Eigenvalues>

#include "core/interrupt.h"
#include "core/math/statistics.h"
#include "core/math/tensor_norms.h"
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
                              const at::Tensor& locked, at::Tensor* first_product) {
  const int64_t most = std::min(steps, op.size());
  KrylovBasis basis(most, op, /*keep_products=*/false);
  Eigen::MatrixXd t = Eigen::MatrixXd::Zero(most, most);
  at::Tensor v = start.to(op.device(), op.dtype(), false, /*copy=*/true);
  v.div_(norm_of(v));
  double radius = 0;
  while (true) {
    throw_if_interrupted();
    at::Tensor w = op.apply(v).detach();
    if (first_product && basis.size() == 0) *first_product = w.clone();
    if (locked.defined()) w.sub_(at::mv(locked.t(), at::mv(locked, w)));
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

namespace {

double bump(double x, double centre, double width) {
  const double z = (x - centre) / width;
  return std::exp(-0.5 * z * z) / (width * std::sqrt(2 * M_PI));
}

}  // namespace

SpectralDensity spectral_density(const std::vector<Quadrature>& starts, double width, int64_t points,
                                 const std::vector<double>& known, double share) {
  SpectralDensity result;
  result.width = width;
  std::vector<double> places = known;
  for (const Quadrature& start : starts) places.insert(places.end(), start.nodes.begin(), start.nodes.end());
  if (places.empty()) return result;
  const double low = *std::min_element(places.begin(), places.end()) - 4 * width;
  const double high = *std::max_element(places.begin(), places.end()) + 4 * width;
  for (int64_t i = 0; i < points; ++i) {
    const double x = low + (high - low) * static_cast<double>(i) / (static_cast<double>(points) - 1);
    double outer = 0;
    for (const double value : known)
      outer += share / static_cast<double>(known.size()) * bump(x, value, width);
    std::vector<double> samples;
    for (const Quadrature& start : starts) {
      double sum = 0;
      for (size_t j = 0; j < start.nodes.size(); ++j)
        sum += start.weights[j] * bump(x, start.nodes[j], width);
      samples.push_back(outer + (1 - share) * sum);
    }
    const SampleMean estimate = starts.empty() ? SampleMean{outer, 0, 0} : mean_of(samples);
    result.grid.push_back(x);
    result.density.push_back(estimate.value);
    result.standard_error.push_back(estimate.standard_error);
  }
  return result;
}

}  // namespace basin
