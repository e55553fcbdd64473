// defines: CurveTraining, the search for a path of low loss between two networks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "data/example_stream.h"
#include "io/checkpoint.h"
#include "landscape/curve.h"
#include "optim/schedule.h"
#include "optim/sgd.h"

namespace basin {

struct CurveTrainingOptions {
  double epochs = 30;
  int64_t batch_size = 128;
  double learning_rate = 0.02;
  double momentum = 0.9;
};
void bind_options(OptionTable& table, CurveTrainingOptions& options);

/// Mean loss over the examples `index` (int64) at a point of the curve; writes its gradient, flat over the
/// parameters that are trained.
using BatchLoss =
    std::function<double(const at::Tensor& point, const at::Tensor& index, at::Tensor& gradient)>;

/// Moves a curve's bends so as to minimise E_{t ~ U(0,1)} L(theta(t)) (Garipov et al., NeurIPS 2018, equation
/// 2): each update draws one t and one batch, and steps with dL/dP_k = c_k(t) grad L(theta(t)) by heavy-ball
/// SGD, rate warmed up and then annealed along a cosine (optim/schedule.h). The ends stay where they are.
/// Batches are slices of reshuffled epochs (data/example_stream.h); t and batch depend on seed and
/// update alone, so an interrupted training that goes on from save() ends with the same bits.
///
/// Cost: one gradient of a batch per update. Memory: four vectors per bend.
/// What can go wrong: the expectation is not the maximum: a short, high ridge costs little. A straight line
/// that is symmetric about a ridge has no gradient that leads off it but the noise's. Training that is too
/// short shows a barrier where there is none: look at epoch_losses().
class CurveTraining {
 public:
  /// `curve` outlives this. Only the first `trained` entries of a bend move: the parameters of a state
  /// vector.
  CurveTraining(Curve& curve, int64_t trained, int64_t examples, const CurveTrainingOptions& options,
                uint64_t seed);

  int64_t updates() const { return updates_; }
  int64_t updates_done() const { return update_; }
  /// All updates are done, or it diverged.
  bool ended() const { return diverged_ || update_ == updates_; }
  /// A loss or a gradient was not finite; the curve stands where it was before that.
  bool diverged() const { return diverged_; }
  /// Mean over the updates of each epoch that has ended: of L at random points of the curve, before the
  /// update.
  const std::vector<double>& epoch_losses() const { return epoch_losses_; }

  void step(const BatchLoss& loss);
  /// t of an update, in [0, 1).
  double draw(int64_t update) const;

  void save(Checkpoint& checkpoint) const;
  void restore(const Checkpoint& checkpoint);

 private:
  void note(double loss);

  Curve& curve_;
  CurveTrainingOptions options_;
  uint64_t seed_;
  int64_t examples_, updates_;
  std::vector<ParameterInfo> bends_;  // views of the curve's own
  std::unique_ptr<Sgd> optimizer_;
  std::unique_ptr<RateSchedule> rates_;
  ExampleStream stream_;
  int64_t update_ = 0;
  bool diverged_ = false;
  double loss_sum_ = 0;  // of this epoch so far
  int64_t losses_ = 0;
  std::vector<double> epoch_losses_;
};

}  // namespace basin
