// defines: problems whose sharpness is known in closed form.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "hessian/objective.h"
#include "models/model.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin::testing {

/// With one class and mse each example's loss is 30 + x_i'w, linear in w [features]: the logit is 1 + sqrt(2
/// l_i), the target 1.
class LinearLoss final : public Model {
 public:
  explicit LinearLoss(at::Tensor w)
      : w_(add_parameter("fc", "weight", ParameterKind::weight, std::move(w))) {}
  at::Tensor forward(const at::Tensor& x) override {
    return x.matmul(w_).add(30).mul(2).sqrt().add(1).unsqueeze(1);
  }

 private:
  at::Tensor w_;
};

/// logits = X W' + b.
class AffineModel final : public Model {
 public:
  AffineModel(at::Tensor w, at::Tensor b)
      : w_(add_parameter("fc", "weight", ParameterKind::weight, std::move(w))),
        b_(add_parameter("fc", "bias", ParameterKind::bias, std::move(b))) {}
  at::Tensor forward(const at::Tensor& x) override { return x.matmul(w_.t()) + b_; }

 private:
  at::Tensor w_, b_;
};

/// Square loss of an AffineModel with two classes: quadratic in w = (W row by row, b), written out without
/// autograd.
struct AffineSquares {
  at::Tensor x = sine_numbers({23, 4}), labels = at::arange(23).remainder(2);
  at::Tensor w = sine_numbers({2, 4}, 100), b = sine_numbers({2}, 200);

  Objective objective(int64_t micro_batch = 5) const {
    return Objective(std::make_shared<AffineModel>(w.clone(), b.clone()), LossKind::mse, x, labels,
                     micro_batch);
  }
  at::Tensor weights() const { return at::cat({w.flatten(), b}); }
  /// 1 for weights, 0 for biases.
  at::Tensor is_weight() const { return at::cat({at::ones({8}, at::kDouble), at::zeros({2}, at::kDouble)}); }

  at::Tensor residual(const at::Tensor& index) const {
    return x.index_select(0, index).matmul(w.t()) + b -
           at::one_hot(labels.index_select(0, index), 2).to(at::kDouble);
  }
  at::Tensor gradient(const at::Tensor& index) const {
    const at::Tensor r = residual(index);
    return at::cat({r.t().matmul(x.index_select(0, index)).flatten(), r.sum(0)}) / index.size(0);
  }
  /// L(w + d) - L(w) = g'd + 1/2 d'Hd, where d'Hd is the mean of |D x + e|^2.
  double rise(const at::Tensor& index, const at::Tensor& d) const {
    const at::Tensor moved =
        x.index_select(0, index).matmul(d.narrow(0, 0, 8).reshape({2, 4}).t()) + d.narrow(0, 8, 2);
    return gradient(index).dot(d).item<double>() + 0.5 * moved.square().sum(1).mean().item<double>();
  }
  /// The diagonal of H = E[(x, 1)(x, 1)'] for each class.
  at::Tensor hessian_diagonal() const {
    const at::Tensor squares = x.square().mean(0);
    return at::cat({squares, squares, at::ones({2}, at::kDouble)});
  }
  at::Tensor all() const { return at::arange(23); }
};

/// mlp 9 -> 4 -> 3 with ReLU, biases and no weight of size 0.
struct ReluNetwork {
  std::shared_ptr<Model> model = make_test_model("mlp", {"hidden=[4]", "activation=relu"}, tiny_shape());
  TinyBatch batch = tiny_batch(tiny_shape(), 40);
  ReluNetwork() { ParameterVector(model->parameter_table()).scatter(sine_numbers({55})); }
  Objective objective() { return Objective(model, LossKind::cross_entropy, batch.images, batch.labels, 40); }

  /// The same function: first layer times alpha, second over alpha, first biases too.
  void rescale(double alpha) {
    const std::vector<ParameterInfo>& table = model->parameter_table();
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < table.size(); ++i) {
      const bool first = table[i].layer == table[0].layer;
      const bool output_bias = !first && table[i].kind == ParameterKind::bias;
      if (!output_bias) table[i].tensor.mul_(first ? alpha : 1 / alpha);
    }
  }
};

}  // namespace basin::testing
