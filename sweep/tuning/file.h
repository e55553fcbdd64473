// defines: write_tune_file(), tune.h5 out of the trials of a tuning.
#pragma once

#include <string>
#include <vector>

#include "sweep/tuning/selection.h"

namespace basin {

/// docs/file-format.md: /runs, one row per tuning run; /scores, one row per candidate of a group at a
/// rung; /winners, one row per group. Atomic.
void write_tune_file(const std::string& path, const Study& study, const std::vector<Trial>& trials);

}  // namespace basin
