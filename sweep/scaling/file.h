// defines: write_scaling_file(), scaling.h5 out of what was measured.
#pragma once

#include <string>
#include <vector>

#include "sweep/scaling/measure.h"

namespace basin {

/// docs/file-format.md: /updates, one row per batch size, number of ranks and round; /products and /sums alike. Atomic.
void write_scaling_file(const std::string& path, const Study& study, const std::vector<Cell>& cells,
                        const RankScaling& found);

}  // namespace basin
