#include "hessian/curvature_graph.h"

#include <ATen/ATen.h>

#include "hessian/jacobian.h"
#include "hessian/objective.h"

namespace basin {
namespace {

using Tensors = std::vector<at::Tensor>;

/// d(g . v)/dw with the gradient g of the micro-batch's share of L: two backward passes in all, one per
/// product.
class HessianGraph final : public CurvatureGraph {
 public:
  HessianGraph(Tensors parameters, const at::Tensor& share)
      : parameters_(std::move(parameters)),
        gradients_(derivative({share}, parameters_, {}, /*create_graph=*/true)) {}

  Tensors product(const Tensors& v) const override {
    const auto [outputs, weights] = differentiable(gradients_, v);
    if (outputs.empty()) return Tensors(parameters_.size());
    return derivative(outputs, parameters_, weights, /*create_graph=*/false);
  }

 private:
  Tensors parameters_, gradients_;
};

/// J^T M J v with J the Jacobian of `outputs` (logits or losses).
class JacobianGraph : public CurvatureGraph {
 public:
  JacobianGraph(Tensors parameters, const at::Tensor& outputs, double weight)
      : size_(parameters.size()), jacobian_(std::move(parameters), outputs), weight_(weight) {}

  Tensors product(const Tensors& v) const override {
    const at::Tensor jv = jacobian_.times(v);
    if (!jv.defined()) return Tensors(size_);
    return jacobian_.transposed_times(middle(jv) * weight_);
  }

 protected:
  /// M: the identity for the empirical Fisher matrix and for mean squared error.
  virtual at::Tensor middle(const at::Tensor& jv) const { return jv; }

 private:
  size_t size_;
  Jacobian jacobian_;
  double weight_;
};

/// M = diag(p) - p p^T, the Hessian of cross entropy by the logits; over tokens, that of each.
class SoftmaxGaussNewtonGraph final : public JacobianGraph {
 public:
  SoftmaxGaussNewtonGraph(Tensors parameters, const at::Tensor& logits, double weight)
      : JacobianGraph(std::move(parameters), logits, weight), p_(at::softmax(logits.detach(), -1)) {}

 protected:
  at::Tensor middle(const at::Tensor& jv) const override {
    return p_ * (jv - (p_ * jv).sum(-1, /*keepdim=*/true));
  }

 private:
  at::Tensor p_;
};

}  // namespace

std::unique_ptr<CurvatureGraph> make_curvature_graph(Curvature kind, Objective& objective, int64_t first,
                                                     int64_t count) {
  at::AutoGradMode record(true);
  const double weight = 1.0 / static_cast<double>(objective.examples());
  const Tensors parameters = objective.parameters().tensors();
  const at::Tensor logits = objective.logits(first, count);
  if (kind == Curvature::gauss_newton) {
    if (objective.loss_kind() == LossKind::mse)
      return std::make_unique<JacobianGraph>(parameters, logits, weight);
    const double share =
        logits.dim() > 2 ? weight / static_cast<double>(logits.size(1)) : weight;  // of a token
    return std::make_unique<SoftmaxGaussNewtonGraph>(parameters, logits, share);
  }
  const at::Tensor losses = objective.losses(logits, first, count);
  if (kind == Curvature::hessian) return std::make_unique<HessianGraph>(parameters, losses.sum() * weight);
  return std::make_unique<JacobianGraph>(parameters, losses, weight);
}

}  // namespace basin
