// defines: Curvature, the matrices that products are taken with.
#pragma once

namespace basin {

/// hessian               H = 1/n sum_i d2 l_i / dw2
/// gauss_newton          G = 1/n sum_i J_i^T (d2 l_i / df2) J_i, J_i the Jacobian of the logits f: positive
///                       semidefinite, H without the curvature of f, the Fisher matrix for cross entropy
///                       (Schraudolph, Neural Computation 14, 2002)
/// empirical_fisher      F = 1/n sum_i g_i g_i^T
/// gradient_covariance   C = F - g g^T, g the mean of the n per-example gradients g_i
enum class Curvature { hessian, gauss_newton, empirical_fisher, gradient_covariance };
const char* to_string(Curvature kind);

}  // namespace basin
