// defines: NoiseGauge, the gradient noise scale while a run trains; NoiseStatus.
#pragma once

#include <memory>
#include <vector>

#include "io/checkpoint.h"
#include "io/record.h"
#include "trainers/batch_gradient.h"

namespace basin {

/// As numbers in the table, whose columns are all numbers.
enum class NoiseStatus { ok = 0, not_resolved = 1, unavailable = 2, nonfinite = 3 };

/// B = tr Sigma / |G|^2 from the gradients that training computes anyway, without a further pass: a row of the table
/// noise_scale at the updates that noise_scale_every names. Two of them:
///   none      tr Sigma and |G|^2 from the micro-batches of every k-th update (trainers/noise_look.h), and their
///             moving means (trainers/noise_average.h). Every number of a run stays as it would be without, to the
///             bit. Cost at such an update: two passes over the gradient for each micro-batch besides its norm;
///             memory two copies of the gradient.
///   gpt-neox  theirs, from successive updates (trainers/gpt_neox_noise.h).
/// The gradient is that of the loss trained on, at the weights before the update, before clipping. What it
/// means with ghost batches, dropout and augmentation: docs/probes.md#noise-scale-online.
class NoiseGauge {
 public:
  virtual ~NoiseGauge() = default;
  virtual Table table() const = 0;
  /// Whether the micro-batches of this update (from 1) are to be measured.
  virtual bool measures(int64_t update) const = 0;
  /// With this update's gradient in .grad.
  virtual void add(int64_t update, const Batch& batch, const BatchGradient& gradient) = 0;
  /// The row that the last add() made; empty: it made none.
  const std::vector<double>& row() const { return row_; }
  virtual void save(Checkpoint& checkpoint) const = 0;
  virtual void restore(const Checkpoint& checkpoint) = 0;

 protected:
  std::vector<double> row_;
};

/// Null where noise_scale_every is 0. `data`: the augmentation; n: the training examples.
std::unique_ptr<NoiseGauge> make_noise_gauge(const TrainOptions& options, const DataOptions& data,
                                             const BatchPlan& plan, const Model& model, int64_t n);

}  // namespace basin
