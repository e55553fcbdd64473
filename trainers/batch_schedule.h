// defines: BatchSchedule, the batch size of every update of a run, and how many updates its budget buys.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/schedule.h"
#include "trainers/batch_plan.h"
#include "trainers/train_options.h"

namespace basin {

/// ceil(batch_size / regime_batch), 1 without regime_batch: by which Hoffer et al. 2017 (arXiv 1705.08741,
/// regime adaptation) multiply all that is counted in epochs, so that every batch size makes about as many
/// updates.
double epoch_stretch(const TrainOptions& options);

/// Phases of one batch size each, known before the first update:
///   B_k = batch_size batch_factor^k    from the first update that starts at or past m_k E examples of the stream,
/// m_1 <= m_2 <= ... the batch_milestones, m_0 = 0; without milestones one phase. Growing the batch where
/// others let the rate fall: Smith et al. 2018 (arXiv 1711.00489). The budget E in examples and the T updates
/// that it buys, n training examples:
///   A-epochs   E = epochs stretch n;    T = the least that see E examples, at least 1
///   A-updates  T = updates;     E = T B_0 / sum_k (m_{k+1} - m_k) batch_factor^-k, with m_{K+1} = 1: what T updates
///              see, but for the rounding of phases to whole updates
///   B          one phase;       T = the least whose batches cost max_gradients image gradients; a merged batch costs
///              its distinct examples, counted on the stream itself where its place doesn't say (a batch across the
///              end of an epoch), and a perturbation two gradients per example
/// The stream's position is counted in examples, so the order of examples is that of every other run of the
/// seed. ConfigError where more than kMostExamples would be counted.
class BatchSchedule {
 public:
  struct Phase {
    int64_t batch_size = 0, updates = 0;
  };
  BatchSchedule(const TrainOptions& options, const BatchPlan& plan, int64_t n);

  const std::vector<Phase>& phases() const { return phases_; }
  int64_t updates() const;   // T
  int64_t examples() const;  // of all updates, duplicates counted
  /// Of update t = 0 .. T-1.
  int64_t batch_size(int64_t update) const;
  /// (batch_size(t) / batch_size(0))^batch_rate_power, by which the rate of a growing batch is multiplied: 0 in Smith et al., where
  /// the batch grows instead of the rate's fall; 1 for SGD and 1/2 for Adam in Merrill et al. 2025 (arXiv 2505.23971), whose
  /// batch grows with the critical one.
  double rate_factor(int64_t update) const;

 private:
  std::vector<Phase> phases_;
  double rate_power_;
};

/// What the rate's schedule is laid over: an epoch is n examples, stretched, in batches of the first size.
RunShape run_shape(const TrainOptions& options, const BatchSchedule& batches, int64_t n);

}  // namespace basin
