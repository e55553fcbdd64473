// defines: BatchPlan, how a run cuts its logical batches, and the number of updates that a budget buys.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "models/model.h"
#include "trainers/train_options.h"

namespace basin {

/// Derived from the options once. Ghost batches are consecutive groups of the logical batch, and a micro-batch holds whole
/// ones, so what a batch normalisation sees never depends on micro_batch.
struct BatchPlan {
  int64_t batch_size = 0;
  int64_t micro_batch = 0;      // at most batch_size
  int64_t ghost_batch = 0;
  bool merge_duplicates = false;  // only where an example's gradient doesn't depend on its neighbours or on chance
};

/// ConfigError where micro_batch cuts ghost batches of a network with batch statistics.
void check_batches(const TrainOptions& options, bool has_batch_statistics);
/// Whether duplicates within a batch are computed once and weighted.
bool merges_duplicates(const TrainOptions& options, const DataOptions& data, bool has_dropout, bool has_batch_statistics);
BatchPlan plan_batches(const TrainOptions& options, const DataOptions& data, const Model& model);

/// Updates T that the schedule is laid over and that the run makes at most, n training examples:
///   A-epochs   max(1, ceil(epochs n / B))
///   A-updates  updates
///   B          the least T whose batches cost max_gradients image gradients; a merged batch costs its distinct examples,
///              counted on the stream itself where its place doesn't tell (a batch across the end of an epoch).
/// ConfigError where T·B is beyond kMostExamples.
int64_t planned_updates(const TrainOptions& options, const BatchPlan& plan, int64_t n);

}  // namespace basin
