// defines: Quadrature, lanczos_quadrature() and what spectra are made of: moments, mass, density with a band.
#pragma once

#include <ATen/core/Tensor.h>

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "hessian/linear_operator.h"

namespace basin {

/// Gauss quadrature of v^T f(A) v, |v| = 1: sum_j weights[j] f(nodes[j]), exact for polynomials of degree
/// 2 m - 1 at m nodes (Golub & Meurant 2010, theorem 6.6). Nodes are the eigenvalues of the m by m Lanczos
/// matrix, weights the squares of the first entries of its eigenvectors; they sum to 1.
///
/// Over random v with E[v v^T] = I/n, n times the mean is an unbiased estimate of tr f(A) up to the
/// quadrature's own error (Ubaru, Chen & Saad, SIAM J. Matrix Anal. Appl. 38, 2017).
struct Quadrature {
  std::vector<double> nodes, weights;
  double moment(int power) const;
  double mass_above(double threshold) const;
};

/// `steps` Lanczos steps with full reorthogonalisation from `start`; fewer at a breakdown, where the
/// quadrature is exact. Empty where a product is not finite. With `locked`, orthonormal rows Q to which
/// `start` is orthogonal, the quadrature is that of P A P, P = I - Q^T Q. `first_product`: A start/|start|,
/// where wanted. Cost: `steps` products and vectors.
Quadrature lanczos_quadrature(LinearOperator& op, const at::Tensor& start, int64_t steps,
                              const at::Tensor& locked = {}, at::Tensor* first_product = nullptr);

/// The quadrature that belongs to the matrix T of an unrestarted Lanczos run from one vector.
Quadrature quadrature_of(const Eigen::MatrixXd& tridiagonal);

/// The density of eigenvalues, sum_i N(x; lambda_i, width^2) / n, at `grid`: mean over the starts and
/// standard error of that mean, point by point. A band of t(starts - 1) standard errors covers what the
/// choice of starts moves; it does not cover what smoothing by `width` hides.
struct SpectralDensity {
  std::vector<double> grid, density, standard_error;
  double width = 0;
};
/// `known`: eigenvalues that are known, `share` = their number / n; the starts stand for the others.
SpectralDensity spectral_density(const std::vector<Quadrature>& starts, double width, int64_t points,
                                 const std::vector<double>& known = {}, double share = 0);

}  // namespace basin
