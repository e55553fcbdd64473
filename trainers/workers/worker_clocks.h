// defines: WorkerClocks, which of several workers' gradients arrives next, and what each may begin.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainers/workers/arrivals.h"
#include "trainers/workers/stale_bound.h"

namespace basin {

/// Workers that take steps at their own pace: a step takes the weights as they are when it begins (their version is the number of
/// updates in them) and the next batch; its gradient becomes one update when it arrives. Stale-synchronous parallel (Ho et al., NeurIPS
/// 2013, section 3): a worker that has done c steps may begin the next one when the slowest has done at least c - s. With s = 0 all begin
/// together, bulk-synchronous; without a bound they are Downpour SGD (Dean et al., NeurIPS 2012, section 4.1, one push for each step).
///
/// Arrival by duration: constant (1) or exponential (mean 1), drawn from (seed, worker, step) alone; the first worker's are `straggler`
/// times as long. Ties go to the lower number.
///
/// Between a step's beginning and its arrival each other worker pushes at most 2s + 1 gradients, so the staleness, the number of updates
/// between the weights of a gradient and those it changes, is at most (workers - 1)(2s + 1).
class WorkerClocks final : public Arrivals {
 public:
  struct Options {
    int64_t workers = 1;
    int64_t bound = 0;  // s; below 0: none
    bool exponential = false;
    double straggler = 1;
    uint64_t seed = 0;
  };
  /// All begin at version 0.
  explicit WorkerClocks(const Options& options);

  const StaleStep& next() const override;
  /// Its worker, and whoever waited for it, begin with weights of `version` where they may.
  void advance(int64_t version) override;
  int64_t lead() const override;
  std::set<int64_t> versions() const override;
  int64_t steps_from(int64_t version) const override;
  std::string time_units() const override { return "steps"; }
  double time() const override { return now_; }
  double waited_share() const override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  struct Worker {
    std::optional<StaleStep> step = {};
    double waits_since = 0;
  };
  double duration(int64_t worker, int64_t clock) const;
  void begin(int64_t worker, int64_t version);
  size_t next_worker() const;

  Options options_;
  StaleBound bound_;
  std::vector<Worker> workers_;
  int64_t batches_ = 0;
  double now_ = 0, waited_ = 0;
};

}  // namespace basin
