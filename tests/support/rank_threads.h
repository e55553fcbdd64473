// defines: on_ranks(), ranks as threads of this process; local_place().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.h"

namespace basin::testing {

/// The place of a rank on this host. `listening`: rank 0's socket at that port.
RankPlace local_place(int rank, int ranks, int port, int listening);

/// Calls `work` on as many threads, each with a RankGroup of its own, and leaves. What it throws on each, by rank; "" where nothing. `look` as
/// in RankGroup::join().
std::vector<std::string> on_ranks(int ranks, const std::function<void(RankGroup&)>& work, double look = 0.5);

}  // namespace basin::testing
