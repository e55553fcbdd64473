// defines: write_sweep_file(), sweep.h5 out of the rows of a sweep.
#pragma once

#include <string>
#include <vector>

#include "sweep/collect/rows.h"

namespace basin {

/// The tidy copy of a sweep (docs/file-format.md): /runs, one 1-D dataset per column; /probes, one row per
/// number; /outcomes/test/correct; /curves; /layers. `study` is the study file's text. Atomic.
void write_sweep_file(const std::string& path, const std::string& study, const std::vector<SweepRow>& rows);

}  // namespace basin
