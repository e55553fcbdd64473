// defines: Objective, the mean loss over a fixed set of examples, its gradient and Hessian-vector products.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "hessian/parameter_vector.h"
#include "models/loss.h"
#include "models/model.h"

namespace basin {

/// L(w) = 1/n sum_i loss(f_w(x_i), y_i) over all n examples given, without weight decay or dropout,
/// normalisation by frozen running statistics (NormMode::running). Micro-batches are weighted by their exact
/// share, the unequal last one included. Scalars are summed in float64 whatever the type of the network.
///
/// Cost: gradient() is one forward and one backward pass over n examples; hvp() two backward passes over a
/// retained or rebuilt double-backward graph, 2 to 3.4 gradients. Memory: one micro-batch's graph, or, with
/// retain_graph, all of them. ReLU and max-pool give H without the kink terms: right almost everywhere.
class Objective {
 public:
  /// inputs [n, ...] and labels [n] stay resident. Puts the model in eval mode with frozen statistics.
  Objective(std::shared_ptr<Model> model, LossKind loss, at::Tensor inputs, at::Tensor labels,
            int64_t micro_batch, bool retain_graph = false);

  int64_t examples() const { return labels_.size(0); }
  const ParameterVector& parameters() const { return vector_; }
  at::ScalarType dtype() const;
  at::Device device() const;
  Model& model() const { return *model_; }

  double loss();
  double accuracy();
  /// Flat mean gradient at the current parameters; also sets `loss` where given.
  at::Tensor gradient(double* loss = nullptr);
  /// H v at the current parameters. Changing parameters drops retained graphs.
  at::Tensor hvp(const at::Tensor& v);
  /// Flat mean gradient over the examples `index` (int64).
  at::Tensor gradient_over(const at::Tensor& index);
  int64_t micro_batch() const { return micro_batch_; }
  /// Passes over the whole set so far, in gradients and in HVPs.
  int64_t gradients_done() const { return gradients_done_; }
  int64_t hvps_done() const { return hvps_done_; }

 private:
  /// First-derivative graph of one micro-batch: the gradient of its share of L, differentiable once more.
  struct Graph {
    std::vector<at::Tensor> parameters, gradients;  // undefined where a parameter is unused
  };
  int64_t micro_batches() const;
  at::Tensor losses_of(const at::Tensor& inputs, const at::Tensor& labels);
  at::Tensor add_gradient(const at::Tensor& inputs, const at::Tensor& labels, double weight, at::Tensor sum,
                          double* loss);
  Graph build_graph(int64_t index);
  at::Tensor add_product(const Graph& graph, const std::vector<at::Tensor>& v, at::Tensor sum,
                         bool retain) const;
  bool graphs_are_current() const;
  std::shared_ptr<Model> model_;
  LossKind loss_;
  at::Tensor inputs_, labels_;
  int64_t micro_batch_;
  bool retain_graph_;
  ParameterVector vector_;
  std::vector<Graph> graphs_;
  at::Tensor graphs_at_;                 // parameters for which graphs_ were built,
  std::vector<int64_t> graph_versions_;  // and their version counters then
  int64_t gradients_done_ = 0, hvps_done_ = 0;
};

}  // namespace basin
