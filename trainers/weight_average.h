// defines: WeightAverage, the exponential average of a run's weights; AveragedModel, the model at it for a
// while.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"
#include "trainers/weight_copy.h"

namespace basin {

/// a <- a + (1 - d_t) (w - a) after update t = 1, 2, ..., beginning with a = w at the start;
///   d_t = min(decay, (1 + t) / (10 + t)).
/// The growing decay is that of TensorFlow's ExponentialMovingAverage with num_updates: a run of few large
/// batches averages over its last tenth or so, where a decay of 0.999 would still hold mostly the start, and
/// a mean without bias weighs the first updates as much as the last. Averages of iterates: Polyak & Juditsky
/// 1992.
///
/// Never touches the run's own weights. Cost: one pass over the parameters per update; memory: one copy, in
/// their type.
class WeightAverage {
 public:
  WeightAverage(const std::vector<ParameterInfo>& parameters, double decay);

  /// After update number t.
  void add(int64_t t);
  static double decay_of(double decay, int64_t t);

  const std::vector<at::Tensor>& tensors() const { return average_.tensors(); }
  NamedTensors state() const { return average_.state(); }
  void load_state(const NamedTensors& state) { average_.load_state(state); }

 private:
  double decay_;
  WeightCopy average_;
};

/// Puts the average in the place of the model's weights for as long as it lives; then weights and running
/// statistics are again what they were, bit for bit.
class AveragedModel {
 public:
  AveragedModel(const WeightAverage& average, const Model& model);
  ~AveragedModel();
  AveragedModel(const AveragedModel&) = delete;
  AveragedModel& operator=(const AveragedModel&) = delete;

 private:
  std::vector<at::Tensor> tensors_, kept_;  // the model's parameters and buffers; what they held
};

}  // namespace basin
