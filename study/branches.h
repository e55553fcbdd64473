// defines: branch_link() and check_branches(), which run of a study, or which file, each branch begins from.
#pragma once

#include <memory>
#include <vector>

#include "study/needed_runs.h"

namespace basin {

/// branch.from: the parent's run_id. A path of a checkpoint, or of a run's folder, becomes "sha256:" and the file's SHA-256, and goes to
/// branch.path; such a text stays as it is. ConfigError in one line for a parent that keeps no checkpoint branch.at or has another
/// network, data set or dtype; IoError where a file is missing, damaged or foreign.
/// branch.rate_factor is multiplied into the learning rate, after the parent was found by the rate without it.
std::unique_ptr<RunLink> branch_link();

/// A cell without branch.from loses its other keys of [branch]: swept together with branch.from, they make one run there.
/// ConfigError where a study has [branch] and no branch.
void check_branches(std::vector<Cell>& cells, const Study& study);

}  // namespace basin
