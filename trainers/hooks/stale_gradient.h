// defines: StaleGradient, updates by gradients of older weights, as several workers make them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainers/hooks/weight_copy.h"
#include "trainers/update_hook.h"
#include "trainers/workers/arrivals.h"
#include "trainers/workers/stale_options.h"
#include "trainers/workers/stale_record.h"

namespace basin {

/// Update t+1 moves the weights w_t by the optimiser's step for the gradient at w_{t - tau_t} of the batch that its worker began with:
/// what a parameter server does with one push, here in one process and the same from run to run. Who arrives when, and what each may
/// begin, is WorkerClocks', or a RecordedOrder's. The optimiser, its momentum and its schedule are the server's: one update for each
/// push, of a batch of batch_size. Batches are those of the plain run, in the order in which steps begin; at the end of the run `workers` - 1 of them are
/// under way and have no effect. The recorded loss is that of the batch at the worker's weights.
///
/// Bulk-synchronous (bound = 0), SGD without momentum and decay, K workers: K updates at one place, the update of a batch of
/// K batch_size with K times the rate. Constant delays without a bound that acts: tau = K - 1 at every update but the first K.
///
/// Workers take weights where the optimiser takes gradients (Optimizer::go_to_gradient_point). In the record, of each update: worker,
/// staleness, lead, number of the batch and simulated time; together they are the order of arrivals. Cost: two copies of the weights in each
/// update, no further gradient; memory: one copy for each version in use, at most `workers`.
///
/// What can go wrong: rates that are stable without staleness are not with it (for a quadratic with curvature lambda, SGD without
/// momentum and fixed tau: rate lambda < 2 sin(pi / (2 (2 tau + 1)))).
class StaleGradient final : public UpdateHook, private GradientRule {
 public:
  using Options = StaleGradientOptions;
  static void bind(OptionTable& table, Options& options);
  /// Neither growing batches, nor overlap, nor rules that take the gradient of a batch in several passes or groups.
  static void check(const Options& options, const HookCheck& run);
  static void plan(const Options& options, BatchPlan& plan) { plan.stale = options.on(); }
  /// Or a PushedGradient, where workers are processes.
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  StaleGradient(const Options& options, const HookSetup& setup);

  GradientRule* gradient_rule() override { return this; }
  void before_gradient(OngoingUpdate& update) override;
  void after_update(int64_t update) override;
  void at_end(Summary& summary, bool diverged) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;
  std::vector<Column> train_columns() const override { return record_.columns(); }
  void append_train_values(std::vector<double>& row) const override { record_.append(row); }

 private:
  double group_gradient(const std::function<double()>& plain) override;
  bool is_taken_later(int64_t version) const;
  WeightCopy copy() const;
  int64_t version() const { return record_.updates(); }  // of the weights

  std::vector<ParameterInfo> parameters_;
  std::unique_ptr<Arrivals> arrivals_;
  std::map<int64_t, WeightCopy> kept_;          // by version
  int64_t first_start_ = -1, first_draw_ = -1;  // of its batch 0; below 0: there was none yet
  StaleStep step_;                              // of the update being made, and its lead
  int64_t lead_ = 0;
  StaleRecord record_;
};

}  // namespace basin
