// defines: PerExampleGradients, squared norms and sums of the gradients of single examples.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "hessian/gradients/example_gradients.h"
#include "hessian/problem.h"
#include "models/layers/layer_calls.h"

namespace basin {

/// Sums over the n gradients g_i, in float64 on the objective's device. Tensors are numbered as in
/// ParameterVector::parameters().
struct ExampleSums {
  at::Tensor squared_norms;  // [n, tensors]: |g_i|^2 of each tensor's part; summed over tensors, the whole's
  at::Tensor mean;           // [parameters]: G = 1/n sum_i g_i
  at::Tensor mean_square;    // [parameters]: 1/n sum_i g_ij^2; undefined where not asked for
};

/// Weights of a sum over parameters, flat: sum_j linear_j g_ij + quadratic_j g_ij^2. Without the second, of
/// the first alone.
struct ExampleWeights {
  at::Tensor linear, quadratic = {};
};

/// g_i, the gradients of the single examples' losses of an objective, exactly (but for rounding) and without
/// a backward pass each. One forward pass over a micro-batch notes what each layer was called with, one
/// backward pass gives the gradients by the layers' outputs, and from both follow sums over each g_i
/// (hessian/gradients/layer_gradients.h): convolutions, linear layers, embeddings, normalisation by frozen statistics or
/// by example, biases. A parameter that several of them share has its gradients formed and added up. Exact because in eval mode an example's output depends on that example alone.
///
/// Norms are computed as layers of their own (NormMode::running), also where the objective folds them.
///
/// Refused with a ConfigError that names layer or parameter: a network in training mode or with statistics of
/// the batch, a parameter that enters the loss outside of the layers above, a linear layer over more than vectors or
/// sequences of them. Which is seen from the graph, before anything is computed
/// with it.
///
/// A network without layers of ours (Model::has_own_layers()) notes no calls, and one in another process none that are seen here: there
/// each example has a batch_gradient of its own, n of them, which take several times as long.
///
/// Cost: a pass is a forward and a backward pass in which other products stand in for the gradients by the
/// weights, docs/probes.md#gradient-statistics; n does not enter by the example. Memory: one micro-batch's
/// graph, one layer's inputs and gradients by outputs again, and a piece of gradients; then 8 bytes per
/// parameter and sum, and 8 n bytes per tensor.
class PerExampleGradients {
 public:
  explicit PerExampleGradients(Problem& problem) : problem_(problem) {}

  /// One pass. `squares`: mean_square too, for which the gradients of convolutions are formed one by one.
  ExampleSums sums(bool squares = false);
  /// One pass: for each of `weights` the sums over each tensor's part of each g_i, float64 [n, tensors]. With
  /// G as the linear weight they add up to g_i . G.
  std::vector<at::Tensor> products(const std::vector<ExampleWeights>& weights);

 private:
  using Take = std::function<void(int64_t first, size_t tensor, const ExampleGradients&)>;
  void for_each(const Take& take);
  void take_by_layers(Objective& objective, const Take& take);
  void take_micro_batch(Objective& objective, int64_t first, int64_t count, const Take& take);
  void take_one_by_one(const Take& take);
  void check(const at::Tensor& loss, const std::vector<LayerCall>& calls) const;
  size_t place_of(const at::Tensor& parameter) const;
  std::vector<int64_t> calls_by_parameter(const std::vector<LayerCall>& calls) const;
  at::Tensor by_example() const;
  void sum_over_ranks(const std::vector<at::Tensor>& found) const;

  Problem& problem_;
};

}  // namespace basin
