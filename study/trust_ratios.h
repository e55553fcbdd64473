// defines: take_trust_ratios(), given trust ratios from the record of another run.
#pragma once

#include <string>
#include <vector>

#include "core/options.h"

namespace basin {

/// The mean trust ratio of each parameter over the rows of /layers of a run (its folder, or the run.h5 in it), as entries of
/// trust_ratios; parameters without one are left out. The rows are the first update, every k-th and the last, each counted once.
/// ConfigError where the run has no trust ratios.
std::vector<std::string> mean_trust_ratios(const std::string& run);

/// Fills the optimiser's trust_ratios where a frozen arm has none and trust_from names a run. From then on the numbers are the run's
/// own, part of its name, and the file is not read again.
void take_trust_ratios(OptionTable& table, const std::string& optimizer);

}  // namespace basin
