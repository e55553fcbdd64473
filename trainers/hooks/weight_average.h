// defines: WeightAverage, the exponential average of a run's weights; AveragedModel, the model at it for a
// while.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/model.h"
#include "trainers/hooks/weight_copy.h"
#include "trainers/update_hook.h"

namespace basin {

struct WeightAverageOptions {
  double decay = 0;  // per update; 0: no average
};
void bind_options(OptionTable& table, WeightAverageOptions& options);

/// a <- a + (1 - d_t) (w - a) after update t = 1, 2, ..., beginning with a = w at the start;
///   d_t = min(decay, (1 + t) / (10 + t)).
/// The growing decay is that of TensorFlow's ExponentialMovingAverage with num_updates: a run of few large
/// batches averages over its last tenth or so, where a decay of 0.999 would still hold mostly the start, and
/// a mean without bias weighs the first updates as much as the last. Averages of iterates: Polyak & Juditsky
/// 1992.
///
/// Never touches the run's own weights. At the end, when all is said of those, it is evaluated on every split (average_train_loss
/// and the like in the summary, NaN where the run diverged) and kept as the checkpoint "average", with running statistics of its
/// own. Cost: one pass over the parameters per update, one evaluation; memory: one copy, in their type.
class WeightAverage final : public UpdateHook {
 public:
  using Options = WeightAverageOptions;
  /// Not with chains on shards: between updates the weights are those of one chain, not the run's.
  static void check(const Options& options, const HookCheck& run);
  static HookCost cost(const Options& options);
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  WeightAverage(const Model& model, double decay, HookedRun& run);

  static double decay_of(double decay, int64_t t);

  void after_update(int64_t t) override;
  void after_end(Summary& summary, bool diverged) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;

 private:
  const Model& model_;
  double decay_;
  HookedRun& run_;
  WeightCopy average_;
};

/// Puts the average in the place of the model's weights for as long as it lives; then weights and running
/// statistics are again what they were, bit for bit.
class AveragedModel {
 public:
  AveragedModel(const std::vector<at::Tensor>& average, const Model& model);
  ~AveragedModel();
  AveragedModel(const AveragedModel&) = delete;
  AveragedModel& operator=(const AveragedModel&) = delete;

 private:
  std::vector<at::Tensor> tensors_, kept_;  // the model's parameters and buffers; what they held
};

}  // namespace basin
