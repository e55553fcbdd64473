// defines: measure_rank_scaling(), RankScaling: what more ranks bring and cost, for cells of a study.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.h"
#include "study/study.h"
#include "sweep/collect/columns.h"

namespace basin {

struct RankScalingRequest {
  int64_t rounds = 5;
  double seconds = 1;  // of updates at each batch size, and of Hessian products
};

/// Rows as sweep/scaling/file.h writes them.
struct RankScaling {
  std::vector<ColumnRow> updates, products, sums;
};

/// Batch sizes at which a run is timed: strong the same for any number of ranks, weak and small times that number. With batch normalisation all hold whole ghost batches.
struct TimedSizes {
  int64_t strong =
      0;              // the cell's, whatever the ranks; where duplicates are merged, at most the training set
  int64_t weak = 0;   // of one rank, so that `most` of them have the cell's or just less
  int64_t small = 0;  // of one rank, for what an update takes however small it is
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
