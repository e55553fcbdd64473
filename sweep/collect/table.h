// defines: table_markdown(), the sweep as a table for people.
#pragma once

#include <string>
#include <vector>

#include "sweep/collect/rows.h"
#include "sweep/collect/table_probes.h"

namespace basin {

/// A section per protocol, a line per setting (batch size x optimiser x learning rate, and a column for each option that tells
/// settings of one batch size and optimiser apart): how its runs ended, and mean +- standard error over seeds (n). Runs that diverged, missed or overshot the target are counted in
/// the line and enter no mean; a line without any other run says so in words. Curvature is shown under
/// protocol B alone, where training losses match.
/// `axes`: the study's, named first where an option follows from another.
std::string table_markdown(const std::vector<SweepRow>& rows, const std::vector<std::string>& axes = {});

/// Whether a run may enter means: finished, and under protocol B not overshot.
bool is_comparable(const SweepRow& row);

}  // namespace basin
