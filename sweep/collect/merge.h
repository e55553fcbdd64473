// defines: SweepSource and merged(), the runs of several sweeps as those of one.
#pragma once

#include <string>
#include <vector>

#include "sweep/collect/rows.h"

namespace basin {

/// One sweep that is collected.
struct SweepSource {
  std::string folder, study;  // the study's text; empty where the folder has none
  std::vector<SweepRow> rows;
};

/// All rows, in the order of read_sweep_rows(), each with a column `source` where there are several sources. A run that is in
/// several is taken once: the one that has ended, and of those that have, the one with the most probes. IoError, in one
/// line with both folders, where two that have ended differ in any bit that isn't a time, where the same probe on the same
/// checkpoint of both does, where each has a probe that the other lacks, and where two sweeps trained on other data under the
/// same options.
std::vector<SweepRow> merged(std::vector<SweepSource> sources);

}  // namespace basin
