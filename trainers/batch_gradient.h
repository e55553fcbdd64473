// defines: BatchGradient, the mean gradient of a logical batch in the memory of one micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "data/dataset.h"
#include "data/example_stream.h"
#include "models/loss.h"
#include "models/model.h"
#include "trainers/batch_plan.h"

namespace basin {

/// g = 1/B sum_i k_i grad loss(f_w(x_i), y_i), x_i the batch's examples and k_i how often each comes up, accumulated over
/// micro-batches into the .grad tensors that the constructor gives the parameters (laid out like them, so channels-last
/// stays channels-last). The same to rounding for every micro-batch size, with augmentation, dropout and ghost batches too:
/// crops and flips are drawn from stream positions, dropout masks in stream order from a CPU generator a layer (on a GPU as
/// well; its own generator's masks would depend on the cut), and micro-batches hold whole ghost batches.
///
/// Cost: one forward and one backward pass an example. Memory: one micro-batch's graph; of the batch only indices.
class BatchGradient {
 public:
  BatchGradient(std::shared_ptr<Model> model, const Dataset& data, const DataOptions& augmentation, LossKind loss,
                const BatchPlan& plan, uint64_t master_seed, at::ScalarType dtype, at::Device device);

  /// Fills the .grad tensors; returns the batch's mean loss, summed in float64.
  double compute(const Batch& batch);

 private:
  at::Tensor micro_batch_inputs(const at::Tensor& index, const Batch& batch, int64_t first, int64_t last) const;
  at::Tensor micro_batch_loss(const Batch& batch, int64_t first, int64_t last, at::Tensor& loss_sum);

  std::shared_ptr<Model> model_;
  const Dataset& data_;
  DataOptions augmentation_;
  LossKind loss_;
  BatchPlan plan_;
  uint64_t master_seed_;
  at::ScalarType dtype_;
  at::Device device_;
};

}  // namespace basin
