// defines: measure_rank_scaling(), RankScaling: what more ranks bring and cost, for cells of a study.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.h"
#include "study/study.h"
#include "sweep/update_timing.h"

namespace basin {

struct RankScalingRequest {
  int64_t rounds = 5;
  double seconds = 1;  // of updates at each batch size, and of Hessian products
};

/// Updates of one batch size on some ranks.
struct TimedUpdates {
  std::string optimizer, scaling;  // strong, weak or small
  int64_t ranks = 1, batch = 0, round = 1;
  UpdateTiming timing;
  bool on_one_host = false;  // then the loopback interface has all that they sent
  double images_per_second() const { return static_cast<double>(batch) / timing.seconds; }
};

/// Hessian products over so many examples.
struct TimedProducts {
  int64_t ranks = 1, round = 1, examples = 0;
  double seconds = 0;  // of one
  int64_t timed = 0;
};

/// Sums of tensors of so many bytes.
struct TimedSums {
  int64_t ranks = 1, round = 1, bytes = 0;
  double seconds = 0;  // median
  int64_t timed = 0;
};

struct RankScaling {
  std::vector<std::string> hosts;  // by rank
  std::vector<TimedUpdates> updates;
  std::vector<TimedProducts> products;
  std::vector<TimedSums> sums;
};

/// Batch sizes at which a run is timed. With batch normalisation all hold whole ghost batches.
struct TimedSizes {
  int64_t strong =
      0;  // the cell's for any number of ranks; at most the training set where duplicates are merged
  int64_t weak = 0;   // times the ranks; `most` of them have the cell's or just less
  int64_t small = 0;  // times the ranks, for what an update takes however small it is
};
TimedSizes timed_sizes(const RunOptions& cell, int most, int64_t train_examples);

/// One cell of the largest batch size for each optimiser, in the study's order.
std::vector<Cell> cells_to_scale(const std::vector<Cell>& cells);

/// 1, 2, 4, ... and `size`.
std::vector<int> rank_counts(int size);

/// Updates, Hessian products and sums on 1, 2, 4, ... and all ranks: the first so many share the work and the others wait. Each number of
/// ranks once a round, in another order each round, so that what else the machines do falls on all. Rates leave the weights where they are;
/// nothing is written. All ranks call it; rank 0's rows count. `step` hears how much is done of 1.
/// ConfigError for one rank, and, before anything is timed, where a batch can't be shared by so many.
RankScaling measure_rank_scaling(const std::vector<Cell>& cells, const RankGroup& ranks,
                                 const RankScalingRequest& request, const std::function<void(double)>& step);

}  // namespace basin
