// defines: BatchGradient, the mean gradient of a logical batch in the memory of one micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/augmentation.h"
#include "data/dataset.h"
#include "data/example_stream.h"
#include "models/loss.h"
#include "models/model.h"
#include "optim/perturbation.h"
#include "trainers/batch_plan.h"
#include "trainers/graphed_step.h"
#include "trainers/noise_look.h"
#include "trainers/train_options.h"

namespace basin {

/// Which of the ways to the same gradient is taken.
struct GradientExecution {
  std::string description = "eager";     // "graph", or "eager: " and why; kept in the run's record
  bool gather = false;                   // inputs by gathered_inputs(), as on a GPU, not by loops over memory
  std::shared_ptr<StepCapture> capture;  // null: no graphs
};
GradientExecution gradient_execution(bool graphs_wanted, at::Device device, const Model& model);

/// Where a batch stands in its run: what chance that goes by positions is drawn from.
struct BatchPlace {
  int64_t update = 0;  // from 0
  int64_t start = 0;   // stream position of its first example
};

/// g = 1/B sum_i k_i grad loss(f_w(x_i), y_i), x_i the batch's examples and k_i how often each comes up, accumulated over
/// micro-batches into the .grad tensors that the constructor gives the parameters (laid out like them, so channels-last
/// stays channels-last). The same to rounding for every micro-batch size, with augmentation, dropout and ghost batches too:
/// crops and flips are drawn from stream positions, dropout masks from the update and the position in the batch, and
/// micro-batches hold whole ghost batches.
///
/// With a perturbation (optim/perturbation.h) the mean over its groups of each group's G, weighted by the
/// group's share of the batch: for each group a gradient at w and one at w + d, with the same crops, dropout
/// masks and ghost batches, and w put back.
///
/// A group's gradient is a function of the weights and of one small tensor of indices (accumulate()): what a CUDA graph
/// captures, all micro-batches together. With autocast (models/layers/autocast.h) the forward passes are in bfloat16, losses and
/// gradients in the parameters' type; the gradient is then that of rounded weights and activations.
///
/// Cost: one forward and one backward pass an example, with a perturbation two. Memory: one micro-batch's graph,
/// with a perturbation some copies of the parameters too; of the batch only indices.
class BatchGradient {
 public:
  /// `data` lies on `device` (data/resident.h).
  BatchGradient(std::shared_ptr<Model> model, const Dataset& data, const DataOptions& augmentation,
                const TrainOptions& options, const BatchPlan& plan, at::ScalarType dtype, at::Device device,
                const GradientExecution& execution);
  BatchGradient(const BatchGradient&) = delete;
  BatchGradient& operator=(const BatchGradient&) = delete;

  /// Fills the .grad tensors; returns the mean loss of all examples at w, summed in float64. `groups`:
  /// batch_groups(), or some of them; `place`: of the update's batch as a whole. `measured`: the same bits, and
  /// micro_batch_norms() besides; one group, and only where noise_scale_every asks for it.
  double compute(const std::vector<Batch>& groups, const BatchPlace& place, bool measured = false);
  /// Of the last compute() that was measured; waits for the device.
  MicroBatchNorms micro_batch_norms() const;
  /// A copy of the mean gradient of the last of those groups, where there is no perturbation.
  std::vector<at::Tensor> of_last_group() const { return last_group_; }

 private:
  double mean_of(const std::vector<Batch>& groups, double (BatchGradient::*of_group)(const Batch&));
  double group_gradient(const Batch& group);
  double measured_gradient(const Batch& group);
  double perturbed_gradient(const Batch& group);
  void start_at(const Batch& group);
  std::vector<at::Tensor> gradients() const;
  at::Tensor indices_of(const Batch& group) const;
  void accumulate(const at::Tensor& indices, int64_t size);
  void accumulate_measured(const at::Tensor& indices, int64_t size);
  void make_room_for_norms(int64_t largest_batch);
  at::Tensor micro_batch_loss(const at::Tensor& indices, int64_t row, int64_t size);
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
  std::optional<Perturbation> perturbation_;
  std::vector<at::Tensor> last_group_;
  std::optional<GraphedStep> measured_step_;  // where noise_scale_every asks for it
  std::vector<at::Tensor> sums_;              // of micro-batches' gradients, in a measured step
  at::Tensor squares_;                        // |sum|^2, then that of each micro-batch's part
  int64_t micro_batches_ = 0;                 // of the last measured batch
};

}  // namespace basin
