// defines: write_sweep_file(), sweep.h5 out of the rows of a sweep.
#pragma once

#include <string>
#include <vector>

#include "sweep/collect/rows.h"
#include "sweep/collect/sources.h"

namespace basin {

/// The tidy copy of a sweep (docs/file-format.md): /runs, one 1-D dataset per column; /probes, one row per
/// number; /outcomes/test/correct; /curves; /layers; of several sources /sources. Atomic.
void write_sweep_file(const std::string& path, const std::vector<SourceEntry>& sources,
                      const std::vector<SweepRow>& rows);

}  // namespace basin
