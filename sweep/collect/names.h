// defines: write_names(), what the members of the registries are called, for those who read a sweep's file without the program.
#pragma once

#include <vector>

#include "io/h5.h"
#include "sweep/collect/rows.h"

namespace basin {

/// /names of sweep.h5 (docs/file-format.md): a table for each registry, one row per member in its order, and what figures and
/// tables show of the probes.
void write_names(h5::File& file, const std::vector<SweepRow>& rows);

}  // namespace basin
