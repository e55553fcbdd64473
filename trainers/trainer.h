// defines: Trainer, one training run as a list of named steps; TrainSetup and TrainResult.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "data/dataset.h"
#include "data/example_stream.h"
#include "io/checkpoint.h"
#include "io/record.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "trainers/batch_gradient.h"
#include "trainers/batch_plan.h"
#include "trainers/batch_schedule.h"
#include "trainers/check_rule.h"
#include "trainers/evaluation.h"
#include "trainers/gradient_clipping.h"
#include "trainers/lookahead.h"
#include "trainers/noise_gauge.h"
#include "trainers/observer.h"
#include "trainers/train_options.h"
#include "trainers/weight_average.h"

namespace basin {

/// `data` and `optimizer` outlive the trainer. The model has the type that `train.dtype` names and stands on `device`.
struct TrainSetup {
  TrainOptions train;
  ScheduleOptions schedule;
  DataOptions data_options;  // augmentation
  const Dataset& data;
  std::shared_ptr<Model> model;
  Optimizer& optimizer;
  at::Device device = at::kCPU;
  bool cuda_graphs = true;  // where they can be
};

using Summary = std::vector<std::pair<std::string, OptionValue>>;

struct TrainResult {
  std::string status;   // finished | target_not_reached | diverged | interrupted
  std::string message;  // one line where it isn't "finished"
  Summary summary;      // empty when interrupted
  ExampleOutcomes validation, test;
};

/// Trains under one of three protocols: a fixed budget in epochs (A-epochs) or updates (A-updates), or until the full
/// training loss reaches a target (B). A batch is the next B positions of the example stream, B as the batch
/// schedule says; its mean gradient is accumulated over micro-batches, clipped, and the optimiser steps with
/// rate = learning_rate x scaling rule (of the first batch size) x schedule (RateSchedule). Labels are smoothed in the
/// batch losses alone: whatever else is called a loss here is without. Lookahead's synchronisation is part of the update
/// before it, and of all that is seen after it, but not of update_norm, which is the optimiser's step. A weight average
/// is evaluated after all the rest, with running statistics of its own, and changes nothing.
///
/// Divergence (a batch loss, or a checked or final training loss, that is not finite or above divergence_loss) is a
/// result without evaluations, not an exception. Observers see every
/// update, evaluation and checkpoint. restore() then run() gives the same bits as an undisturbed run: what a run does
/// never depends on when checkpoints fell, and only times differ.
class Trainer {
 public:
  explicit Trainer(TrainSetup setup);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void observe(TrainObserver& observer) { observers_.push_back(&observer); }
  /// Looked at between updates; the default asks for SIGINT and SIGTERM. True ends run() with status interrupted, after
  /// a checkpoint "latest".
  void set_stop_request(std::function<bool()> requested) { stop_requested_ = std::move(requested); }

  TrainResult run();

  /// Model, buffers, optimiser, generators, counters, and the copies of the weights that the run keeps.
  void save(Checkpoint& checkpoint) const;
  /// IoError where names or shapes differ from this run's.
  void restore(const Checkpoint& checkpoint);

  int64_t updates_done() const { return state_.update; }
  int64_t total_updates() const { return total_updates_; }
  const RateSchedule& rates() const { return rates_; }
  const TrainSetup& setup() const { return setup_; }
  /// How gradients are computed: "graph", or "eager: " and why.
  const std::string& execution() const { return execution_.description; }
  /// Null where noise_scale_every is 0.
  const NoiseGauge* noise() const { return noise_.get(); }

 private:
  /// All that changes while a run goes on, besides tensors.
  struct State {
    int64_t update = 0, examples = 0, gradients = 0;
    int64_t next_check = 0, next_evaluation = 0, levels_passed = 0;  // the first two in examples
    bool near_target = false;                                        // a check was: they are denser since
    double steps_to_target = NAN;
    bool overshot = false;
    std::string ending;  // "", "target" or "diverged"
    std::string message;
    double seconds = 0, update_seconds = 0;  // wall time: all, and that of updates alone
  };

  bool ended() const { return !state_.ending.empty() || state_.update >= total_updates_; }
  void take_update();
  int64_t learn_overlap(int64_t batch_size);
  void report_update(double loss, int64_t batch_size, const ClippedGradients& clipped);
  void evaluate_if_due();
  void apply_check(double train_loss);
  void pass_levels(double train_loss);
  void keep_milestone_if_due();
  void checkpoint_if_due();
  TrainResult interrupt();
  TrainResult finish();
  EvaluationRecord evaluate_all(ExampleOutcomes* test, ExampleOutcomes* validation = nullptr);
  EvaluationRecord evaluate_average();
  SplitScore evaluate_views();
  SplitScore train_score();
  bool is_divergence(double loss) const;
  void diverge(const std::string& message);
  Summary summarise(const EvaluationRecord& scores) const;
  double distance_from_start() const;
  void checkpoint(const std::string& label);
  void event(const std::string& level, const std::string& text);
  void advance_clock();

  TrainSetup setup_;
  BatchPlan plan_;
  CheckRule checks_;
  Dataset data_;  // on the device
  EvaluationSetup evaluation_;
  Views views_;
  std::vector<at::Tensor> overlap_gradient_;
  GradientExecution execution_;
  BatchGradient gradient_;
  ExampleStream stream_;
  BatchSchedule batches_;
  int64_t total_updates_;
  RateSchedule rates_;
  std::vector<at::Tensor> start_;
  std::optional<Lookahead> lookahead_;
  std::optional<WeightAverage> average_;
  std::unique_ptr<NoiseGauge> noise_;
  std::vector<ParameterStep>
      unclipped_;  // the last update's, with the norms of the gradients before clipping
  State state_;
  std::optional<std::pair<int64_t, SplitScore>>
      known_score_;              // update and score, not to evaluate the same weights twice
  std::optional<double> level_;  // of the checkpoint being kept
  std::vector<TrainObserver*> observers_;
  std::function<bool()> stop_requested_;
  Clock::time_point clock_, last_checkpoint_;
};

/// Parameters and buffers by name; IoError where one is missing or shaped differently. For probes too.
void restore_model(Model& model, const Checkpoint& checkpoint);

}  // namespace basin
