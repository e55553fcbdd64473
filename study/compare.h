// defines: fingerprints() and first_difference(), whether two studies ask for the same.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// A SHA-256 for each cell over all that decides what is run and measured (run_id, probes and their options,
/// selection), sorted: equal for study files that differ in comments, order of keys, [runtime],
/// probes.micro_batch, probes.graph_memory and probes.fold_norm alone.
std::vector<std::string> fingerprints(const Study& study);

/// For messages, where fingerprints differ: the first run of `there` that `here` doesn't have as it is, the
/// first key in which its nearest run differs and both values ("updates = 20 there, 7 here"); else the first
/// run that `here` has besides those of `there`; else the selection seeds.
std::string first_difference(const Study& there, const Study& here);

}  // namespace basin
