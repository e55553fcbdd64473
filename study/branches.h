// defines: resolve_branches(), which run of a study, or which file, each branch begins from.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// Replaces branch.from of each cell by its parent's name, and gives the cell its new run_id and its parent (Cell::parents).
///
///   conditions   `batch_size = 32, optimizer = "sgd"`, a text with "=": the one cell with the same seed for which they hold, and
///                which has the branch's own values of the study's other axes; it is no branch itself unless a condition is of
///                [branch]. Becomes the parent's run_id.
///   a path       of a checkpoint, or of a run's folder: becomes "sha256:" and the file's SHA-256; the path goes to branch.path.
///   a run_id     of 12 hex digits, or "sha256:...", as config.toml has it: stays.
///
/// branch.rate_factor is multiplied into the learning rate, after the parent was found by the rate without it.
/// A cell without branch.from loses its other keys of [branch]: swept together with branch.from, they make one run there.
/// Cells that come to the same run are left once. ConfigError in one line for conditions that name no cell or several, for a
/// branch of itself or in a circle, and for a parent that keeps no checkpoint branch.at or has another network, data set or
/// dtype; IoError where a file is missing, damaged or foreign.
void resolve_branches(std::vector<Cell>& cells, const Study& study);

}  // namespace basin
