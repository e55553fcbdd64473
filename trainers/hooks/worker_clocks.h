// defines: WorkerClocks, which of several workers' gradients arrives next, and what each may begin.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "trainers/hooks/stale_bound.h"

namespace basin {

/// A gradient on its way to the server, or there.
struct StaleStep {
  int64_t worker = 0;   // from 0
  int64_t clock = 0;    // steps that its worker had done when it began
  int64_t version = 0;  // updates in the weights it is of
  int64_t batch = 0;    // number of its batch, from 0, in the order in which steps begin
  double ends = 0;      // when it arrives, in mean durations of a step
};

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
class WorkerClocks {
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

  /// The step that arrives next.
  const StaleStep& next() const;
  /// It has arrived and is update `version` of the weights: its worker, and whoever waited for it, begin with these where they may.
  void advance(int64_t version);

  /// How many steps the worker of next() has done more than the slowest, once its gradient has arrived.
  int64_t lead() const;
  /// The versions that steps under way are of, and how many are of one.
  std::set<int64_t> versions() const;
  int64_t steps_from(int64_t version) const;
  /// Worker time spent waiting for the bound, of all until the last arrival.
  double waited_share() const;
  double time() const { return now_; }

  NamedTensors state() const;
  /// IoError where it is of other workers.
  void load_state(const NamedTensors& state);

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
