// defines: running_order(), which cell of a sweep is begun when; parents_among().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "study/study.h"
#include "sweep/cost_model.h"

namespace basin {

/// By position in the list, the positions of a cell's parents; those that aren't in the list are left out.
std::vector<std::vector<size_t>> parents_among(const std::vector<Cell>& cells);

/// Indices of the cells as they are begun. A comparison is what has one seed: all of it comes before the next, in the order in
/// which the seeds stand in the grid, so that a sweep that was stopped has whole comparisons. Within one, settings that
/// differ in the protocol alone come together, and the longest comes first: of these lots by their longest, and in a lot.
/// Parents among the cells come before those that need them, at the latest right before the first of them.
std::vector<size_t> running_order(const std::vector<Cell>& cells, const CostModel& costs);

}  // namespace basin
