// defines: fingerprints(), whether two studies ask for the same.
#pragma once

#include <string>
#include <vector>

#include "apps/study.h"

namespace basin {

/// A SHA-256 for each cell over all that decides what is run and measured (run_id, probes and their options,
/// selection), sorted: equal for study files that differ in comments, order of keys, [runtime],
/// probes.micro_batch and probes.graph_memory alone.
std::vector<std::string> fingerprints(const Study& study);

}  // namespace basin
