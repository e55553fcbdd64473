// defines: NormBall, the unit ball of a norm of parameters, its extreme points and its dual norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "hessian/parameter_vector.h"

namespace basin {

/// Norms that methods of steepest descent go by: signSGD and Lion by l_inf, Muon by the largest spectral norm of any matrix.
enum class DescentNorm { linf, spectral };

/// What Muon takes for a matrix: a parameter with two or more dimensions. Others have no spectral norm.
inline bool has_matrix(const at::Tensor& parameter) { return parameter.dim() >= 2; }

/// { d : |d| <= 1 } for flat vectors d of the parameters:
///   linf      |d| = max_j |d_j|;              farthest(x) = sign(x),  dual norm |x|_1
///   spectral  |d| = max_l |D_l|_op, D_l the matrices of d, other parameters held at 0;
///             farthest(x) = U V' of each X_l = U S V', of its singular values that aren't 0;  dual norm sum_l |X_l|_nuc
/// Cost: spectral an SVD of each matrix. x has to be finite: an SVD throws on others.
class NormBall {
 public:
  /// `vector` outlives this.
  NormBall(DescentNorm norm, const ParameterVector& vector) : norm_(norm), vector_(vector) {}
  /// The point of the ball with the largest x'd, which is then the dual norm of x.
  at::Tensor farthest(const at::Tensor& x) const;
  double dual_norm(const at::Tensor& x) const;

 private:
  DescentNorm norm_;
  const ParameterVector& vector_;
};

}  // namespace basin
