// defines: write_probe_table(), /probes of sweep.h5: one row per number that a probe gave, at any checkpoint.
#pragma once

#include <vector>

#include "io/h5.h"
#include "sweep/collect/rows.h"

namespace basin {

/// The long table (docs/file-format.md); nothing where no run was probed. A number's `entry` is what its column in /runs is
/// called behind the probe's name; its `options` are those in which the measurements of the probe differ in this sweep.
void write_probe_table(h5::File& file, const std::vector<SweepRow>& rows);

}  // namespace basin
