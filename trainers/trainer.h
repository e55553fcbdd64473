// defines: Trainer, one training run as a list of named steps; TrainSetup and TrainResult.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "data/dataset.h"
#include "data/example_stream.h"
#include "io/checkpoint.h"
#include "io/record.h"
#include "io/run_state.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "ranks/rank_group.h"
#include "trainers/batch_gradient.h"
#include "trainers/batch_plan.h"
#include "trainers/batch_schedule.h"
#include "trainers/branch.h"
#include "trainers/check_rule.h"
#include "trainers/evaluation.h"
#include "trainers/observer.h"
#include "trainers/run_progress.h"
#include "trainers/train_options.h"
#include "trainers/update_hook.h"

namespace basin {

class ServerLink;  // ranks/worker_links.h

/// `data`, `optimizer` and `ranks` outlive the trainer. The model has the type that `train.dtype` names and stands on `device`.
struct TrainSetup {
  TrainOptions train;
  ScheduleOptions schedule;
  DataOptions data_options;  // augmentation
  const Dataset& data;
  std::shared_ptr<Model> model;
  Optimizer& optimizer;
  at::Device device = at::kCPU;
  bool cuda_graphs = true;  // where they can be
  std::optional<BranchStart> branch = {};
  const RankGroup& ranks = RankGroup::alone();
  WorkerLinks* workers = nullptr;                 // that push gradients to this trainer, which is then alone
  bool is_worker = false;                         // run() isn't called, but work_for()
  std::shared_ptr<const ArrivalList> order = {};  // that parallel.order names
};

struct TrainResult {
  RunState status = RunState::finished;  // or target_not_reached, diverged, interrupted
  std::string message;                   // one line where it isn't finished
  Summary summary;                       // empty when interrupted
  ExampleOutcomes validation, test;
};

/// Trains under one of three protocols: a fixed budget in epochs (A-epochs) or updates (A-updates), or until the full
/// training loss reaches a target (B). A batch is the next B positions of the example stream, B as the batch
/// schedule says; its mean gradient is accumulated over micro-batches, and the optimiser steps with
/// rate = learning_rate x scaling rule (of the first batch size) x schedule (RateSchedule). Labels are smoothed in the
/// batch losses alone: whatever else is called a loss here is without. What else happens around an update is hooks
/// (trainers/update_hook.h); what they do to weights after a step is part of that update, and of all that is seen after it, but
/// not of update_norm, which is the optimiser's step.
///
/// Divergence (a batch loss, or a checked or final training loss, that is not finite or above
/// divergence_loss) is a result without evaluations, not an exception. Observers are notified of every
/// update, evaluation and checkpoint. restore() then run() gives the same bits as an undisturbed run: what a
/// run does never depends on when checkpoints fell, and only times differ.
///
/// A branch begins with the parent's weights, and with its optimiser state, its place in the stream and what its hooks keep as
/// [branch] says (trainers/branch.h); a hook that the parent had not begins at these weights. Its counters go on from the
/// parent's, its times don't. All splits are evaluated at its start. With the parent's options and both kept it is the parent's
/// continuation, bit for bit. ConfigError or IoError in the constructor where the parent doesn't fit.
/// With several ranks each process has a trainer of its own with the same options, and all do the same: they share the micro-batches of
/// gradients and evaluations, and every one of them moves the same weights by the same gradient. Rank 0's has the observers. Weights
/// that are no longer the same to the bit are a NumericError, looked for at every evaluation.
class Trainer : private HookedRun {
 public:
  explicit Trainer(TrainSetup setup);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void observe(TrainObserver& observer) { observers_.push_back(&observer); }
  /// Checked between updates; the default checks for SIGINT and SIGTERM. True ends run() with status
  /// interrupted, after a checkpoint "latest".
  void set_stop_request(std::function<bool()> requested) { stop_requested_ = std::move(requested); }

  TrainResult run();
  /// In the place of run(), of a worker: gradients at the server's weights of the batches that it orders, until it has no more. RankLost.
  void work_for(ServerLink& server);

  /// Model, buffers, optimiser, progress, and what hooks keep.
  void save(Checkpoint& checkpoint) const;
  /// IoError where names or shapes differ from this run's, and for a checkpoint of a version whose dropout masks had a state.
  void restore(const Checkpoint& checkpoint);

  int64_t updates_done() const { return progress_.update; }
  int64_t total_updates() const { return total_updates_; }
  /// Updates done when the run began: a branch's parent's.
  int64_t first_update() const { return course_.first(); }
  const RateSchedule& rates() const { return rates_; }
  const TrainSetup& setup() const { return setup_; }
  /// How gradients are computed: "graph", or "eager: " and why.
  const std::string& execution() const { return execution_.description; }
  /// What hooks add to the table "train", and tables of their own.
  std::vector<Column> hook_columns() const;
  std::vector<Table> hook_tables() const;

 private:
  // The interface for hooks.
  RunProgress& progress() override { return progress_; }
  void keep_checkpoint(const std::string& label) override;
  void event(const std::string& level, const std::string& text) override;
  void refresh_statistics() override;
  SplitScore score_test(Views views) override;
  void keep_test_outcomes(const std::string& label) override;
  EvaluationRecord score_other_weights(const std::string& label) override;

  void begin();
  void take_first_ranks(const std::vector<ParameterInfo>& parameters) const;
  void check_replicas() const;
  bool records() const { return !observers_.empty() || !setup_.ranks.is_alone(); }
  void begin_branch(const Checkpoint& parent);
  void take_optimizer_state(const Checkpoint& parent);
  RunProgress progress_at_branch(const Checkpoint& parent) const;
  int64_t batch_size_of(int64_t update) const { return batches_.batch_size(course_.position(update)); }
  double rate_of(int64_t update) const;
  double last_rate() const;
  bool ended() const { return progress_.ending != Ending::none || progress_.update >= total_updates_; }
  bool diverged() const { return progress_.ending == Ending::diverged; }
  void make_hooks();
  void take_update();
  bool takes_norms(int64_t update) const;
  double compute_gradient(OngoingUpdate& update);
  void report_update(const OngoingUpdate& update, double loss);
  void evaluate_if_due();
  void apply_check(double train_loss);
  void checkpoint_if_due();
  TrainResult interrupt();
  TrainResult finish();
  EvaluationRecord evaluate_all(ExampleOutcomes* test, ExampleOutcomes* validation = nullptr);
  SplitScore train_score();
  bool is_divergence(double loss) const;
  void diverge(const std::string& message);
  Summary summarise(const EvaluationRecord& scores) const;
  double distance_from_start() const;
  void advance_clock();

  TrainSetup setup_;
  BatchPlan plan_;
  CheckRule checks_;
  Dataset data_;  // on the device
  EvaluationSetup evaluation_;
  GradientExecution execution_;
  BatchGradient gradient_;
  ExampleStream stream_;
  BatchSchedule batches_;
  std::optional<BranchPoint> branch_;
  Course course_;
  int64_t total_updates_, norms_every_;
  RateSchedule rates_;
  std::vector<at::Tensor> start_;
  mutable std::shared_ptr<KernelTables> distance_tables_;  // of weights and start_, on a GPU
  std::vector<std::unique_ptr<UpdateHook>> hooks_;
  std::vector<ParameterStep>
      steps_;  // the last update's, with the norms of gradients before hooks changed them
  RunProgress progress_;
  struct {
    RankTraffic traffic;
    double seconds = 0;
    int64_t updates = 0;
  } shared_;  // of the updates of this process
  std::optional<std::pair<int64_t, SplitScore>>
      known_score_;  // update and score, not to evaluate the same weights twice
  std::vector<TrainObserver*> observers_;
  std::function<bool()> stop_requested_;
  Clock::time_point clock_, last_checkpoint_;
};

/// Parameters and buffers, on the host, into the checkpoint.
void store_model(const Model& model, Checkpoint& checkpoint);
/// Parameters and buffers by name; IoError where one is missing or shaped differently. For probes too.
void restore_model(Model& model, const Checkpoint& checkpoint);

}  // namespace basin
