// defines: BatchGradient, the mean gradient of a logical batch in the memory of one micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/augmentation.h"
#include "data/dataset.h"
#include "data/example_stream.h"
#include "models/loss.h"
#include "models/model.h"
#include "ranks/gradient_buckets.h"
#include "ranks/rank_group.h"
#include "trainers/batch_plan.h"
#include "trainers/gradient_norm.h"
#include "trainers/graphed_step.h"
#include "trainers/train_options.h"

namespace basin {

/// How the gradient is computed; every way gives the same one.
struct GradientExecution {
  std::string description = "eager";     // "graph", or "eager: " and why; kept in the run's record
  bool gather = false;                   // inputs by gathered_inputs(), as on a GPU, not by loops over memory
  std::shared_ptr<StepCapture> capture;  // null: no graphs
};
GradientExecution gradient_execution(bool graphs_wanted, at::Device device, const Model& model);

/// The place of a batch in its run, from which position-dependent random numbers are drawn.
struct BatchPlace {
  int64_t update = 0;  // from 0
  int64_t start = 0;   // stream position of its first example
};

/// The weights with which the examples of a group enter its gradient, in place of count / size.
class BatchWeights {
 public:
  virtual ~BatchWeights() = default;
  /// One for each of group.examples.
  virtual std::vector<double> weights(const Batch& group, const BatchPlace& place) = 0;
};

/// A rule for the gradient of a group of examples, in place of the gradient of its loss.
class GradientRule {
 public:
  virtual ~GradientRule() = default;
  /// Into .grad; returns the sum of the losses at w. `plain` puts the group's mean gradient at the weights as they stand there and
  /// returns the sum of its losses; called again it sees the same crops, dropout masks and ghost batches. The weights end as w.
  virtual double group_gradient(const std::function<double()>& plain) = 0;
};

/// g = 1/B sum_i k_i grad loss(f_w(x_i), y_i), x_i the batch's examples and k_i how often each comes up, accumulated over
/// micro-batches into the .grad tensors that the constructor gives the parameters (laid out like them, so channels-last
/// stays channels-last). The same to rounding for every micro-batch size, with augmentation, dropout and ghost batches too:
/// crops and flips are drawn from stream positions, dropout masks from the update and the position in the batch, and
/// micro-batches hold whole ghost batches.
///
/// With BatchWeights the gradient is sum_i a_i grad loss_i, a_i what they say; the loss stays the plain mean.
///
/// With a rule the mean over groups of what it makes of each group, weighted by the group's share of the batch.
///
/// A group's gradient is a function of the weights and of one small tensor of indices (accumulate()): what a CUDA graph
/// captures, all micro-batches together. With autocast (models/layers/autocast.h) the forward passes are in bfloat16, losses and
/// gradients in the parameters' type; the gradient is then that of rounded weights and activations.
///
/// Several ranks share the micro-batches of each group, in their order, and the gradient is summed over ranks while the last of a
/// rank's backward passes goes on: the same gradient on every rank, to the bit, and to rounding that of one process.
///
/// Cost: one forward and one backward pass per example for each time that a rule asks. Memory: one micro-batch's graph,
/// with a rule two copies of the gradient; of the batch only indices.
class BatchGradient {
 public:
  /// `data` lies on `device` (data/resident.h).
  BatchGradient(std::shared_ptr<Model> model, const Dataset& data, const DataOptions& augmentation,
                const TrainOptions& options, const BatchPlan& plan, at::ScalarType dtype, at::Device device,
                const GradientExecution& execution, const RankGroup& ranks = RankGroup::alone());
  /// `rule`, which outlives this, is what is plain to the rules added before it.
  void add_rule(GradientRule& rule) { rules_.push_back(&rule); }
  /// `weights` outlives this.
  void weigh_examples(BatchWeights& weights) { weights_ = &weights; }
  /// For compute(..., measured).
  void make_room_for_norms(int64_t largest_batch);
  BatchGradient(const BatchGradient&) = delete;
  BatchGradient& operator=(const BatchGradient&) = delete;

  /// Fills the .grad tensors; returns the mean loss of all examples at w, summed in float64. `groups`:
  /// batch_groups(), or some of them; `place`: of the update's batch as a whole. `measured`: the same bits, and
  /// micro_batch_norms() besides; one group without rules, and only after make_room_for_norms().
  double compute(const std::vector<Batch>& groups, const BatchPlace& place, bool measured = false);
  /// The mean loss that compute() would return at the weights as they stand, by forward passes alone: the same examples,
  /// crops, masks and ghost batches. Leaves .grad, running statistics and what was measured as they are.
  double loss(const std::vector<Batch>& groups, const BatchPlace& place);
  /// The norms of the last compute() that was measured; waits for the device.
  MicroBatchNorms micro_batch_norms() const;
  /// A copy of the mean gradient of the last of those groups, where there are rules or an overlap.
  std::vector<at::Tensor> of_last_group() const { return last_group_; }
  /// The .grad tensors.
  std::vector<at::Tensor> gradients() const;

 private:
  double mean_of(const std::vector<Batch>& groups);
  double by_rules(const Batch& group, size_t first);
  double group_gradient(const Batch& group);
  double measured_gradient(const Batch& group);
  void start_at(const Batch& group);
  Share mine(const std::vector<at::Tensor>& micro_batches) const;
  void finish_sums();
  at::Tensor indices_of(const Batch& group) const;
  at::Tensor padded(const at::Tensor& indices, int64_t size) const;
  void accumulate(const at::Tensor& indices, int64_t size);
  void accumulate_measured(const at::Tensor& indices, int64_t size);
  at::Tensor micro_batch_loss(const std::vector<at::Tensor>& micro_batches, int64_t k, int64_t size);
  at::Tensor micro_batch_inputs(const at::Tensor& indices) const;

  std::shared_ptr<Model> model_;
  const Dataset& data_;
  LossKind loss_;
  double label_smoothing_;
  BatchPlan plan_;
  Augmentation augmentation_;
  at::ScalarType dtype_;
  at::Device device_;
  bool autocast_, gather_;
  at::Tensor loss_sum_;  // of the last group
  GraphedStep step_;
  BatchPlace place_;
  DropoutPlace dropout_;  // of the first example of the group being computed
  std::vector<GradientRule*> rules_;
  BatchWeights* weights_ = nullptr;
  std::vector<at::Tensor> last_group_;
  std::shared_ptr<StepCapture> capture_;
  const RankGroup& ranks_;
  std::optional<GradientBuckets> buckets_;    // with other ranks
  std::optional<GraphedStep> measured_step_;  // after make_room_for_norms()
  std::vector<at::Tensor> sums_;              // of micro-batches' gradients, in a measured step
  at::Tensor squares_;                        // |sum|^2, then that of each micro-batch's part
  int64_t micro_batches_ = 0;                 // of the last measured batch
};

}  // namespace basin
