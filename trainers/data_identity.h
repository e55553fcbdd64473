// defines: data_attributes(), what files record about a run's data; check_same_data().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "data/dataset.h"

namespace basin {

using DataAttributes = std::vector<std::pair<std::string, OptionValue>>;

/// RunHeader::data and Checkpoint::data: name, pixels, hashes, counts, classes, mean and std.
DataAttributes data_attributes(const Dataset& data);

/// IoError naming `file` and both values where `stored`, read from it, names other data than `loaded`: contents
/// (sha256), training split (split_hash), or what inputs are normalised by (mean, std). A run's id says which set was asked
/// for, not what lay at data.path.
void check_same_data(const std::string& file, const DataAttributes& stored, const DataAttributes& loaded);

}  // namespace basin
