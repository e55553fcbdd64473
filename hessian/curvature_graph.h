// defines: Curvature, CurvatureGraph: one micro-batch's share of a curvature matrix, ready for products.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace basin {

class Objective;

/// hessian               H = 1/n sum_i d2 l_i / dw2
/// gauss_newton          G = 1/n sum_i J_i^T (d2 l_i / df2) J_i, J_i the Jacobian of the logits f: positive
///                       semidefinite, H without the curvature of f, the Fisher matrix for cross entropy
///                       (Schraudolph, Neural Computation 14, 2002)
/// empirical_fisher      F = 1/n sum_i g_i g_i^T
/// gradient_covariance   C = F - g g^T, g the mean of the n per-example gradients g_i
enum class Curvature { hessian, gauss_newton, empirical_fisher, gradient_covariance };
const char* to_string(Curvature kind);

/// Holds the graph of one micro-batch. product(v): its share of A v, of F v for gradient_covariance.
/// Undefined entries: nothing depends on that parameter. v: tensors shaped as the parameters.
class CurvatureGraph {
 public:
  virtual ~CurvatureGraph() = default;
  virtual std::vector<at::Tensor> product(const std::vector<at::Tensor>& v) const = 0;
};

/// The graph of examples first .. first + count - 1 of the objective, weighted by 1 / objective.examples().
std::unique_ptr<CurvatureGraph> make_curvature_graph(Curvature kind, Objective& objective, int64_t first,
                                                     int64_t count);

}  // namespace basin
