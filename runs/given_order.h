// defines: given_order(), the order of arrivals that a run makes again.
#pragma once

#include <memory>
#include <string>

#include "ranks/rank_group.h"
#include "study/run_options.h"
#include "trainers/workers/recorded_order.h"

namespace basin {

/// Nothing for a run whose arrivals are its own. Otherwise those in parallel.order_path, or in the record of the run parallel.order next
/// to `folder`. IoError in one line where the record is missing or damaged, or has another order than parallel.order names; Error
/// where ranks read different orders.
std::shared_ptr<const ArrivalList> given_order(const RunOptions& options, const std::string& folder,
                                               const RankGroup& ranks);

}  // namespace basin
