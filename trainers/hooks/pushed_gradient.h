// defines: PushedGradient, updates by gradients that other processes push.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "ranks/worker_links.h"
#include "trainers/update_hook.h"
#include "trainers/workers/stale_bound.h"
#include "trainers/workers/stale_options.h"
#include "trainers/workers/stale_record.h"

namespace basin {

/// StaleGradient with processes for workers (parallel.delays = "real"): rank 0 is the server and makes an update of each push in the
/// order of arrival (WorkerLinks::receive), ranks 1, 2, ... are the workers (Trainer::work_for). Who may begin is StaleBound's, and a step
/// begins with the weights and the next batch of that moment. The order of arrivals is chance; the record has it.
///
/// A worker that dies, or is silent for RankGroup::kSilence seconds, is evicted: the step under way is lost, nobody waits for it, and the
/// run's events say so. RankLost where none is left. After a stop all workers begin anew, with batches that were not begun before.
///
/// Cost: the server computes no gradient; a step moves the weights and a gradient between two processes. Times are in seconds, from the
/// first orders on to the last arrival. A worker says how long it computed; all else, messages and a busy server too, counts as waiting.
class PushedGradient final : public UpdateHook, private GradientRule {
 public:
  PushedGradient(const StaleGradientOptions& options, const HookSetup& setup);

  GradientRule* gradient_rule() override { return this; }
  void before_gradient(OngoingUpdate& update) override;
  void after_update(int64_t update) override;
  void at_end(Summary& summary, bool diverged) override;
  void save(Checkpoint& checkpoint) const override;
  void restore(const Checkpoint& checkpoint) override;
  std::vector<Column> train_columns() const override { return record_.columns(); }
  void append_train_values(std::vector<double>& row) const override { record_.append(row); }

 private:
  struct Worker {
    bool busy = false;
    int64_t version = 0, batch = 0;  // of its step
    std::optional<double> since;     // when it had its order, or began to wait; nothing before its first step
  };
  double group_gradient(const std::function<double()>& plain) override;
  void send_orders(int64_t batch_size);
  WorkerEvent next_push(const OngoingUpdate& update);
  int64_t version() const { return record_.updates(); }  // of the weights
  double now() const { return earlier_ + (start_ ? seconds_since(*start_) : 0); }

  std::vector<at::Tensor> weights_;
  BatchGradient& gradient_;
  WorkerLinks& links_;
  HookedRun& run_;
  StaleBound bound_;
  std::vector<Worker> workers_;
  int64_t first_start_ = -1, first_draw_ = -1;  // of batch 0; below 0: there was none yet
  int64_t batches_ = 0, batch_size_ = 0;
  WorkerEvent pushed_;
  Arrival arrival_;
  std::optional<Clock::time_point> start_;        // of the first orders
  double earlier_ = 0, waited_ = 0, worked_ = 0;  // seconds: before a stop; of all workers
  StaleRecord record_{"s"};
};

}  // namespace basin
