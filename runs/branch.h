// defines: branch_start(), what a run begins from where it is a branch of another.
#pragma once

#include <optional>
#include <string>

#include "models/model.h"
#include "study/run_options.h"
#include "trainers/branch.h"
#include "trainers/data_identity.h"

namespace basin {

/// Nothing for a run that is no branch. A branch whose folder has a checkpoint to resume from gets the place where it began, read
/// from its own files; otherwise it gets the parent's checkpoint too: branch.path, or that of the run branch.from next to
/// `folder`. `data`, `model`: the branch's own. IoError in one line, which names the file, where the parent's is missing,
/// damaged, no checkpoint, not the one that branch.from names, or of another network, data set or dtype; ConfigError where the
/// options don't fit its state.
std::optional<BranchStart> branch_start(const RunOptions& options, const std::string& folder,
                                        const DataAttributes& data, const Model& model);

}  // namespace basin
