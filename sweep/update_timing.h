// defines: time_updates(), real updates of a cell at any batch size, and for what TimingLength; by_itself() and updates_only(), its options for that;
// probed_objective().
#pragma once

#include <c10/core/Device.h>

#include <cmath>
#include <cstdint>

#include "data/dataset.h"
#include "hessian/objective.h"
#include "ranks/rank_group.h"
#include "study/run_options.h"

namespace basin {

/// The cell without runs that it needs: they may not be trained yet, and what it has from them costs what others do. And without
/// processes for workers: simulated ones cost what the plain run does, whose time real ones share.
RunOptions by_itself(RunOptions options);

/// The options turned into a run of updates of that batch size and nothing else, at a rate that leaves the weights where they are.
RunOptions updates_only(RunOptions options, int64_t batch);

struct UpdateTiming {
  double seconds = NAN;  // mean of an update
  int64_t updates = 0;   // that were timed
  RankTraffic traffic;   // of these, on this rank
  double wire =
      0;  // bytes that this machine's loopback interface sent meanwhile, whoever's; NaN where it has none
};

/// How long something is repeated to be timed: for `seconds`, or for `of_a_hundred` where those held a hundred passes.
struct TimingLength {
  double seconds;
  double of_a_hundred = seconds;

  bool is_enough(double elapsed, int64_t passes) const {
    return elapsed > seconds || (passes >= 100 && elapsed > of_a_hundred);
  }
};

/// Updates of a cell that stands by_itself(), for that long and at least two, after those that pay for memory, lazy initialisation and, on a
/// GPU, the capture of a graph. All ranks call it; the times are those by this rank's clock.
UpdateTiming time_updates(const RunOptions& cell, const Dataset& data, c10::Device device, int64_t batch,
                          TimingLength length, const RankGroup& ranks = RankGroup::alone());

/// What the cell's probes look at, with its first weights, over the first `examples` training examples.
Objective probed_objective(const RunOptions& cell, const Dataset& data, c10::Device device, int64_t examples);

}  // namespace basin
