// defines: Jacobian, products with the Jacobian of outputs by parameters; derivative(), differentiable().
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace basin {

/// sum_k weights_k . d outputs_k / d inputs, by grad, never backward: backward with create_graph leaves a
/// reference cycle through .grad. The graph of the outputs is kept. Undefined where nothing depends.
std::vector<at::Tensor> derivative(const std::vector<at::Tensor>& outputs,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& weights, bool create_graph);

/// The entries of a that can be differentiated further, and the matching ones of b.
std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> differentiable(const std::vector<at::Tensor>& a,
                                                                           const std::vector<at::Tensor>& b);

/// J = d outputs / d parameters. J^T u is linear in a dummy u, so J v is the derivative of (J^T u) . v by u:
/// no forward-mode differentiation needed (Townsend 2017, "double backward").
///
/// Cost: a backward pass with its own graph once, and about one more for each product. Memory: both graphs,
/// for as long as it lives.
class Jacobian {
 public:
  Jacobian(std::vector<at::Tensor> parameters, at::Tensor outputs);
  /// J v, shaped as the outputs; undefined where no output depends on a parameter. v: shaped as the
  /// parameters.
  at::Tensor times(const std::vector<at::Tensor>& v) const;
  /// J^T u, shaped as the parameters; undefined entries: nothing depends on that one.
  std::vector<at::Tensor> transposed_times(const at::Tensor& u) const;

 private:
  std::vector<at::Tensor> parameters_;
  at::Tensor outputs_, dummy_;
  std::vector<at::Tensor> transposed_;
};

}  // namespace basin
