// defines: SourceEntry, a sweep that was collected; write_sources(), all of them in sweep.h5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/h5.h"

namespace basin {

/// A sweep folder that rows come from, its study file's text and how many runs it has.
struct SourceEntry {
  std::string folder, study;
  int64_t runs = 0;
};

/// /sources of sweep.h5 (docs/file-format.md).
void write_sources(h5::File& file, const std::vector<SourceEntry>& sources);

/// The text of their study: of several, that of the first one that has every setting (config_id, so seeds may differ) and every
/// question of all others; empty where none has.
std::string study_of(const std::vector<SourceEntry>& sources);

}  // namespace basin
