// defines: selection_toml() and selection_table(), what tuning chose, for files and for people.
#pragma once

#include <string>
#include <vector>

#include "sweep/tuning/selection.h"

namespace basin {

/// What OUT/selection.toml holds: how it was chosen, each winner as `when` and `set` (what `sweep.selection`
/// reads), how sure it is, and every score.
std::string selection_toml(const std::vector<Choice>& choices, const Study& study);

/// One line on the budget, then a line per group.
std::string selection_table(const std::vector<Choice>& choices, const Study& study);

/// "16 trials at 1 seed(s) for each of 30 groups, an equal budget: quasi-random, sampler seed 1"; with
/// halving what the rungs are.
std::string budget_text(const Study& study, const std::vector<size_t>& candidates_by_group);

}  // namespace basin
