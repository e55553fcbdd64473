// defines: Objective, the mean loss over a fixed set of examples, and its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "hessian/problem.h"
#include "models/loss.h"
#include "models/model.h"
#include "ranks/rank_group.h"

namespace basin {

/// What may stand between a network's outputs and the loss: [n, ...] -> the same, differentiable.
using LogitMap = at::Tensor (*)(const at::Tensor& logits);

/// L(w) = 1/n sum_i loss(f_w(x_i), y_i) over all n examples given, without weight decay or dropout,
/// normalisation by frozen running statistics (NormMode::folded, or without fold_norm NormMode::running).
/// Micro-batches are weighted by their exact share, the unequal last one included. Scalars are summed in
/// float64 whatever the type of the network.
///
/// After share_over() several ranks, each with the same objective and the same calls in the same order, share the micro-batches, and
/// every sum over examples is one over ranks: here, in curvature operators, single gradients and landscapes. The answers are the same
/// to the bit on every rank, and to rounding those of one process. What asks for logits() computes them on each rank.
///
/// Cost: gradient() is one forward and one backward pass over n examples. Memory: one micro-batch's graph.
/// Products with its curvature matrices: hessian/curvature_operator.h.
class Objective : public Problem {
 public:
  /// inputs [n, ...] and labels [n, ...] (models/loss.h) stay resident. Puts the model in eval mode with frozen statistics.
  /// graph_memory: bytes that products of a curvature operator may take, graphs kept between them included.
  Objective(std::shared_ptr<Model> model, LossKind loss, at::Tensor inputs, at::Tensor labels,
            int64_t micro_batch, int64_t graph_memory = 0, bool fold_norm = true);

  /// `ranks` outlives this. Parts and other logits of this objective are shared as well.
  void share_over(const RankGroup& ranks);
  const RankGroup& ranks() const { return *ranks_; }
  /// Which of the micro-batches are this rank's.
  Share micro_batches_here() const { return ranks_->share(micro_batches()); }

  /// The same loss of the same network over the examples `index` (int64) alone, which are copied. Counts
  /// gradients from 0.
  std::unique_ptr<Problem> part(const at::Tensor& index) const override;
  /// The same, with `map` applied to the logits. Counts gradients from 0.
  Objective with_logits(LogitMap map) const;

  bool answers(Answer answer) const override;
  int64_t examples() const override { return labels_.size(0); }
  const ParameterVector& parameters() const override { return vector_; }
  std::string loss_units() const override { return units_of(loss_); }
  std::string batch_norm_mode() const override { return model_->has_batch_statistics() ? "running" : "none"; }
  Objective* network() override { return this; }
  Model& model() const { return *model_; }

  double loss() override;
  /// The mean of example_hits(): NaN where the labels are numbers.
  double accuracy();
  /// Flat mean gradient at the current parameters; also sets `loss` where given.
  at::Tensor gradient(double* loss = nullptr) override;
  /// Flat mean gradient over the examples `index` (int64).
  at::Tensor gradient_over(const at::Tensor& index) override;
  /// A CurvatureOperator; its file has the definition, which knows both.
  std::unique_ptr<CurvatureProducts> curvature(Curvature kind) override;
  /// The logits of examples first .. first + count - 1, with the graph where gradients are recorded.
  at::Tensor logits(int64_t first, int64_t count);
  at::Tensor losses(const at::Tensor& logits, int64_t first, int64_t count) const;
  at::Tensor labels(int64_t first, int64_t count) const { return labels_.narrow(0, first, count); }
  LabelKind label_kind() const { return basin::label_kind(labels_); }
  LossKind loss_kind() const { return loss_; }
  int64_t micro_batch() const override { return micro_batch_; }
  int64_t micro_batches() const { return (examples() + micro_batch_ - 1) / micro_batch_; }
  int64_t graph_memory() const { return graph_memory_; }
  /// Gradients over the whole set so far.
  int64_t gradients_done() const override { return gradients_done_; }

 private:
  at::Tensor forward(const at::Tensor& inputs) const;
  int64_t count_of(int64_t micro_batch) const {
    return std::min(micro_batch_, examples() - micro_batch * micro_batch_);
  }
  double mean_over_ranks(double sum) const;
  at::Tensor gradient_over_ranks(at::Tensor sum, double* loss) const;
  at::Tensor add_gradient(const at::Tensor& inputs, const at::Tensor& labels, double weight, at::Tensor sum,
                          double* loss);

  std::shared_ptr<Model> model_;
  LossKind loss_;
  at::Tensor inputs_, labels_;
  int64_t micro_batch_;
  int64_t graph_memory_;
  ParameterVector vector_;
  LogitMap logit_map_ = nullptr;
  const RankGroup* ranks_ = &RankGroup::alone();
  int64_t gradients_done_ = 0;
};

}  // namespace basin
