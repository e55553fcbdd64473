// defines: take_trust_ratios() and trust_link(), given trust ratios from the record of another run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "study/needed_runs.h"

namespace basin {

/// The mean trust ratio of each parameter over the rows of /layers of a run (its folder, or the run.h5 in it), as entries of
/// trust_ratios; parameters without one are left out. The rows are the first update, every k-th and the last, each counted once.
/// ConfigError where the run has no trust ratios or diverged.
std::vector<std::string> mean_trust_ratios(const std::string& run);

/// Fills the optimiser's trust_ratios where a frozen arm has none and trust_from is a path, which goes to trust_path. From then on the
/// numbers are the run's own, part of its name, and the file is not read again. An arm that reads no record loses trust_from.
/// `table` is that of `options`.
void take_trust_ratios(RunOptions& options, OptionTable& table);

/// trust_from of a frozen arm without trust_ratios: the run_id of the run whose mean ratios it has, which are read when the run begins
/// (runs/given_ratios.h). ConfigError in one line for a run of another network, and of a method without trust ratios.
std::unique_ptr<RunLink> trust_link();

}  // namespace basin
