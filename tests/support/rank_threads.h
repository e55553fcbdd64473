// defines: on_ranks(), ranks as threads of this process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ranks/rank_group.h"

namespace basin::testing {

/// Calls `work` on as many threads, each with a RankGroup of its own, and leaves. What it throws on each, by rank; "" where nothing. `look` as
/// in RankGroup::join().
std::vector<std::string> on_ranks(int ranks, const std::function<void(RankGroup&)>& work, double look = 0.5);

}  // namespace basin::testing
