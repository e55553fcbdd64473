// defines: UpdateHook, what a technique does around the updates of a run;
// what hooks are made from and get to see.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/example_stream.h"
#include "io/checkpoint.h"
#include "io/record.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "trainers/batch_gradient.h"
#include "trainers/batch_plan.h"
#include "trainers/evaluation.h"
#include "trainers/hook_options.h"
#include "trainers/observer.h"
#include "trainers/run_progress.h"
#include "trainers/train_options.h"

namespace basin {

class WorkerLinks;   // ranks/worker_links.h
struct ArrivalList;  // trainers/workers/recorded_order.h
using Summary = std::vector<std::pair<std::string, OptionValue>>;

/// What a hook may request from its run.
class HookedRun {
 public:
  virtual ~HookedRun() = default;
  virtual RunProgress& progress() = 0;
  /// Observers see and keep it.
  virtual void keep_checkpoint(const std::string& label) = 0;
  virtual void event(const std::string& level, const std::string& text) = 0;
  /// Estimates those of batch normalisation anew, at the weights as they stand.
  virtual void refresh_statistics() = 0;
  virtual SplitScore score_test(Views views) = 0;
  /// A pass over the test split at the weights as they stand, whose outcomes observers keep as "test@LABEL".
  virtual void keep_test_outcomes(const std::string& label) = 0;
  /// For weights that a hook has put in the place of the run's: keeps a checkpoint `label` of them, returns all splits' scores.
  virtual EvaluationRecord score_other_weights(const std::string& label) = 0;
};

/// What hooks are made from. All of it outlives them.
struct HookSetup {
  const TrainOptions& train;
  const DataOptions& data_options;
  const Dataset& data;
  const BatchPlan& plan;
  Model& model;
  Optimizer& optimizer;
  BatchGradient& gradient;
  ExampleStream& stream;
  int64_t updates;  // done when the run ends by its budget
  int64_t first_update,
      first_example;  // done, and the stream's place, before its first: a branch begins later
  std::function<int64_t(int64_t)> batch_size_of;  // of update first_update .. updates - 1
  double peak_rate;                               // RateSchedule::peak()
  HookedRun& run;
  WorkerLinks* workers = nullptr;                 // processes that push gradients
  bool is_worker = false;                         // this is one of those
  std::shared_ptr<const ArrivalList> order = {};  // that parallel.order names
};

/// The update being made.
struct OngoingUpdate {
  int64_t number = 0;                 // from 1
  int64_t start = 0, batch_size = 0;  // its examples of the stream
  int64_t draw = 0;                   // number that dropout masks and noise are drawn for
  std::vector<Batch> groups;          // the same as they are computed; a hook may choose others before
  double loss = NAN;                  // of the batch at the weights before; after the gradient
  int64_t more_gradients = 0;         // image gradients that hooks computed besides
  bool takes_norms = true;            // of weights and steps, for the record
  std::optional<std::vector<double>> norms{};  // by parameter, of the gradient before a hook changed it
  /// The gradient without added noise, where what normalises the step is taken from it, else empty: who changes .grad by a norm takes
  /// the norm from here and changes both.
  std::vector<at::Tensor> clean{};
};

/// A technique of training that is neither model nor optimiser: clipping, an average of the weights, a measurement. Each is one file in
/// trainers/hooks/ and one line of the registry there, which brings its options, and the trainer knows none of them.
///
/// A class has a struct Options with bind_options(), and
///   static std::unique_ptr<UpdateHook> make(const Options&, const HookSetup&);   null where they switch it off
/// and hides those of the static functions below, and overrides those of the moments, that concern it. At each moment hooks act
/// in the registry's order. A run in which every hook is null is the same run to the bit as one of a trainer without hooks, and so
/// are its files.
///
/// Other weights of examples in the gradient are BatchGradient::weigh_examples(). Where things go that are still to come: noise on
/// the weights is after_update(), drawn from (seed, update) by core/math/philox.h so that nothing is saved; a sum over processes
/// is a gradient_rule() at the end of the table, the innermost, so that every other hook sees the gradient of the whole batch. A
/// run that branches from another's checkpoint needs no hook of its own; a hook that only the branch has begins there in place of
/// restore().
class UpdateHook {
 public:
  template <class O>
  static void bind(OptionTable& table, O& options) {
    bind_options(table, options);
  }
  template <class O>
  static void check(const O&, const HookCheck&) {}
  template <class O>
  static UpdatesNeeded updates_needed(const O&) {
    return {};
  }
  template <class O>
  static void plan(const O&, BatchPlan&) {}
  template <class O>
  static HookCost cost(const O&) {
    return {};
  }

  UpdateHook() = default;
  UpdateHook(const UpdateHook&) = delete;
  UpdateHook& operator=(const UpdateHook&) = delete;
  virtual ~UpdateHook() = default;

  /// How the gradient of a group of examples is computed; null: as that of their loss.
  virtual GradientRule* gradient_rule() { return nullptr; }
  /// May compute gradients of its own and counts them in more_gradients.
  virtual void before_gradient(OngoingUpdate&) {}
  /// Whether BatchGradient is to measure this update's micro-batches.
  virtual bool measures(int64_t /*update*/) const { return false; }
  /// The update's gradient is in .grad as it was computed; all hooks see it so. Not where the batch's loss diverged.
  virtual void after_gradient(const OngoingUpdate&) {}
  /// Changes .grad, from what hooks before it have made of it; the first to do so leaves the norms as they were in `norms`.
  virtual void change_gradient(OngoingUpdate&) {}
  virtual void before_step(const OngoingUpdate&) {}
  /// The weights have moved; may move them again, in place. Everything that is seen of the update is seen afterwards.
  virtual void after_update(int64_t /*update*/) {}
  /// After a check of the full training loss that is no divergence.
  virtual void after_check(double /*train_loss*/) {}
  /// After the update's check and evaluation, not where the run diverged.
  virtual void between_updates() {}
  /// Adds to the summary: of the weights that the run ended with.
  virtual void at_end(Summary&, bool /*diverged*/) {}
  /// The same when all is said of those weights; may put others in their place for the time of this call.
  virtual void after_end(Summary&, bool /*diverged*/) {}

  /// State under a name of its own: checkpoint.states, or progress for a few numbers. IoError where it is missing or doesn't fit.
  virtual void save(Checkpoint&) const {}
  virtual void restore(const Checkpoint&) {}

  /// Columns of the table "train", and their values for the last update, appended in their order.
  virtual std::vector<Column> train_columns() const { return {}; }
  virtual void append_train_values(std::vector<double>&) const {}
  /// A table of its own in the run's record, and its row of the last update; empty: none at that update.
  virtual std::optional<Table> table() const { return std::nullopt; }
  virtual const std::vector<double>& row() const { return no_row_; }

 private:
  std::vector<double> no_row_;
};

}  // namespace basin
