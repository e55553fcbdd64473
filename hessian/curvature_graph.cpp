#include "hessian/curvature_graph.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "hessian/objective.h"

namespace basin {
namespace {

using Tensors = std::vector<at::Tensor>;

/// grad, never backward: backward with create_graph leaves a reference cycle through .grad.
Tensors derivative(const Tensors& outputs, const Tensors& inputs, const Tensors& weights, bool create_graph) {
  return torch::autograd::grad(outputs, inputs, weights, /*retain_graph=*/true, create_graph,
                               /*allow_unused=*/true);
}

/// The entries of a that can be differentiated further, with those of b beside them.
std::pair<Tensors, Tensors> differentiable(const Tensors& a, const Tensors& b) {
  std::pair<Tensors, Tensors> kept;
  for (size_t i = 0; i < a.size(); ++i) {
    // A parameter that is unused, or in which the output is linear, adds nothing.
    if (!a[i].defined() || !a[i].requires_grad()) continue;
    kept.first.push_back(a[i]);
    kept.second.push_back(b[i]);
  }
  return kept;
}

/// d(g . v)/dw with the gradient g of the micro-batch's share of L: two backward passes in all, one a
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

/// J^T M J v with J the Jacobian of `outputs` (logits or losses). J^T u is linear in a dummy u, so J v is the
/// derivative of (J^T u) . v by u: no forward-mode differentiation needed (Townsend 2017, "double backward").
class JacobianGraph : public CurvatureGraph {
 public:
  JacobianGraph(Tensors parameters, const at::Tensor& outputs, double weight)
      : parameters_(std::move(parameters)),
        outputs_(outputs),
        dummy_(at::zeros_like(outputs).requires_grad_(true)),
        transposed_(derivative({outputs_}, parameters_, {dummy_}, /*create_graph=*/true)),
        weight_(weight) {}

  Tensors product(const Tensors& v) const override {
    const auto [outputs, weights] = differentiable(transposed_, v);
    if (outputs.empty()) return Tensors(parameters_.size());
    const at::Tensor jv = derivative(outputs, {dummy_}, weights, /*create_graph=*/false).front();
    if (!jv.defined()) return Tensors(parameters_.size());
    return derivative({outputs_}, parameters_, {middle(jv) * weight_}, /*create_graph=*/false);
  }

 protected:
  /// M: the identity for the empirical Fisher matrix and for mean squared error.
  virtual at::Tensor middle(const at::Tensor& jv) const { return jv; }

 private:
  Tensors parameters_;
  at::Tensor outputs_, dummy_;
  Tensors transposed_;
  double weight_;
};

/// M = diag(p) - p p^T, the Hessian of cross entropy by the logits.
class SoftmaxGaussNewtonGraph final : public JacobianGraph {
 public:
  SoftmaxGaussNewtonGraph(Tensors parameters, const at::Tensor& logits, double weight)
      : JacobianGraph(std::move(parameters), logits, weight), p_(at::softmax(logits.detach(), 1)) {}

 protected:
  at::Tensor middle(const at::Tensor& jv) const override {
    return p_ * (jv - (p_ * jv).sum(1, /*keepdim=*/true));
  }

 private:
  at::Tensor p_;
};

}  // namespace

const char* to_string(Curvature kind) {
  switch (kind) {
    case Curvature::hessian:
      return "hessian";
    case Curvature::gauss_newton:
      return "gauss_newton";
    case Curvature::empirical_fisher:
      return "empirical_fisher";
    case Curvature::gradient_covariance:
      return "gradient_covariance";
  }
  return "";
}

std::unique_ptr<CurvatureGraph> make_curvature_graph(Curvature kind, Objective& objective, int64_t first,
                                                     int64_t count) {
  at::AutoGradMode record(true);
  const double weight = 1.0 / static_cast<double>(objective.examples());
  const Tensors parameters = objective.parameters().tensors();
  const at::Tensor logits = objective.logits(first, count);
  if (kind == Curvature::gauss_newton) {
    if (objective.loss_kind() == LossKind::cross_entropy)
      return std::make_unique<SoftmaxGaussNewtonGraph>(parameters, logits, weight);
    return std::make_unique<JacobianGraph>(parameters, logits, weight);
  }
  const at::Tensor losses = objective.losses(logits, first, count);
  if (kind == Curvature::hessian) return std::make_unique<HessianGraph>(parameters, losses.sum() * weight);
  return std::make_unique<JacobianGraph>(parameters, losses, weight);
}

}  // namespace basin
