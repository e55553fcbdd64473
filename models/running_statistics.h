// defines: estimate_running_statistics(), batch normalisation's statistics from scratch.
#pragma once

#include <cstdint>
#include <functional>

#include "models/model.h"
#include "ranks/rank_group.h"

namespace basin {

/// Runs the model forward on examples first .. first + count - 1.
using ForwardRange = std::function<void(int64_t first, int64_t count)>;

/// Puts the averages of ghost-batch statistics over `examples` examples, in their order, in place of the
/// running ones. Calls hold whole ghost batches, so `micro_batch` affects only memory. Leaves
/// NormMode::running; does nothing without batch statistics. One forward pass over the examples, whose ghost batches the ranks
/// share.
void estimate_running_statistics(Model& model, int64_t examples, const ForwardRange& forward,
                                 int64_t micro_batch, int64_t ghost_batch,
                                 const RankGroup& ranks = RankGroup::alone());

}  // namespace basin
