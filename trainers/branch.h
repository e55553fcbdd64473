// defines: BranchPoint, BranchStart, where and from what a branch begins; Course, the updates of a run and their rates.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "io/checkpoint.h"
#include "optim/schedule.h"
#include "trainers/batch_schedule.h"
#include "trainers/train_options.h"

namespace basin {

/// Where a branch left its parent. Counted from the start of the first run of a chain; every checkpoint of a branch has it in its
/// progress ("branch_update", ...), so that a branch goes on without its parent's files.
struct BranchPoint {
  int64_t update = 0, examples = 0, gradients = 0;  // the parent's counters there
  int64_t stream_start =
      0;                    // examples seen before the stream's position 0: `examples` where it was restarted
  int64_t draws_start = 0;  // the same of updates, for dropout masks
  double learning_rate = NAN;         // of the parent's last update
  double train_loss = NAN;            // evaluated when the branch began
  bool same_start = true;             // the chain's first run began at this run's initial weights
  std::string parent, label, sha256;  // run_id, label and SHA-256 of the parent's checkpoint
};
void save_branch_point(const BranchPoint& point, std::map<std::string, OptionValue>& progress);
/// Nothing where the checkpoint is no branch's.
std::optional<BranchPoint> branch_point_of(const Checkpoint& checkpoint);

/// What a trainer begins a branch from.
struct BranchStart {
  BranchPoint point;
  int64_t anneal_updates = 0;  // 0: no annealing
  // Of a branch that begins; nothing below where it is resumed.
  std::shared_ptr<const Checkpoint> parent;
  double passed_loss = NAN;  // the parent's lowest loss level passed; NaN: none
  bool same_target = false;  // both end by matched loss, at one target
  std::string rate_in_slot;  // OptimizerTraits::rate_in_slot, for branch.optimizer = "rescaled"
};

/// Updates over which the rate falls to zero: max(share x updates so far, 3/(1 - momentum), 1), rounded up. 0 for share 0.
/// Three times the momentum buffer's memory, so that the noise of the last hot updates has left the weights.
int64_t anneal_length(double share, int64_t updates_so_far, double momentum);

/// The updates of a run, and where each stands on the run's own schedule of T updates. A run that is no branch: t = 0 .. T-1 at
/// t. A branch goes on counting at its parent's updates u0 and at the place t0 of its own schedule that the parent's progress
/// comes to: under A-updates t0 = u0, otherwise the first update that starts at or past the examples seen. It ends with the
/// schedule (ConfigError where nothing is left of it), or after branch.updates, whose rate stays the schedule's last beyond its
/// end, or with the annealing of L updates:
///   rate(u0 + k) = r (1 - k / L),  k = 0 .. L-1,  r the schedule's rate at t0.
class Course {
 public:
  Course(const TrainOptions& options, const BatchSchedule& batches, const BranchPoint* point,
         int64_t anneal_updates);

  int64_t first() const { return first_; }  // updates done when it begins
  int64_t total() const { return total_; }  // and when it ends by its budget
  bool anneals() const { return anneal_ > 0; }
  /// On the schedule, of update u = first() .. total() - 1; T - 1 beyond its end.
  int64_t position(int64_t update) const;
  double rate(const RateSchedule& rates, int64_t update) const;

 private:
  int64_t scheduled_, first_ = 0, position_ = 0, total_ = 0, anneal_ = 0;
};

}  // namespace basin
