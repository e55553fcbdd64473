// defines: BatchPlan, how a run divides its logical batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/example_stream.h"
#include "trainers/train_options.h"

namespace basin {

/// Derived from the options once. Ghost batches are consecutive groups of the logical batch, and a
/// micro-batch holds whole ones, so what a batch normalisation sees never depends on micro_batch. Groups hold
/// whole ghost batches.
struct BatchPlan {
  int64_t batch_size = 0;   // the first; a BatchSchedule knows the later ones
  int64_t micro_batch = 0;  // at most the largest batch
  int64_t ghost_batch = 0;
  bool merge_duplicates = false;  // only where no example's gradient depends on its neighbours or on chance
  int64_t group = 0;  // consecutive examples that a gradient rule looks at together; 0: all of the batch
  int64_t passes =
      1;  // gradients that are computed of each example: 2 with a perturbation, times 2 with a control of noise
  bool stale = false;           // gradients are of other weights than those that they change
  bool shards = false;          // batches are of several chains' parts of the data in turn
  bool random_weights = false;  // examples enter the gradient with other weights than their counts
  double overlap = 0;           // Optimizer::overlap()
};

/// How many ranks can share the first batch: by examples, with batch statistics by ghost batches.
int64_t most_ranks(const BatchPlan& plan, bool has_batch_statistics);

/// The last examples of a batch that the next update takes a gradient of as well: round(overlap size), at least 1 where
/// there is overlap.
int64_t overlap_of(const BatchPlan& plan, int64_t size);

/// ConfigError where options exclude one another: smoothed labels with mse, autocast of float64, batch_milestones under
/// protocol B, regime_batch with another budget than epochs, a micro_batch that cuts ghost batches of a network with batch
/// statistics; batch_milestones or cut ghost batches with an optimiser's overlap; and what the hooks exclude.
void check_training(const TrainOptions& options, bool has_batch_statistics, double overlap,
                    bool gradients_elsewhere = false);
/// After check_training(). Whether duplicates are merged depends on the model too. ConfigError for dropout with overlap:
/// two gradients of the same examples would differ by their masks.
BatchPlan plan_batches(const TrainOptions& options, const DataOptions& data, bool has_dropout,
                       bool has_batch_statistics, double overlap);

/// The examples [start, start + size) of the stream as they are computed: groups, the last one shorter where they don't divide the batch, or the part before the overlap and the overlap, or one group
/// that is the batch. Duplicates are merged within a group.
std::vector<Batch> batch_groups(ExampleStream& stream, int64_t start, int64_t size, const BatchPlan& plan);
/// Image gradients that they cost.
int64_t gradients_of(const std::vector<Batch>& groups, const BatchPlan& plan);

/// The option, or by default min(256, batch_size).
int64_t ghost_batch_of(const TrainOptions& options);

/// ConfigError where a part of the batch, named by its key, cuts ghost batches and isn't all of it.
void check_cut(const std::string& key, int64_t part, const TrainOptions& options);

/// batch_size batch_factor^k, k the number of batch_milestones. ConfigError beyond kMostExamples.
int64_t largest_batch(const TrainOptions& options);

}  // namespace basin
