// defines: canonical_text(), what a table of a study file says, whatever its formatting.
#pragma once

#include <string>
#include <vector>

#include "core/toml_file.h"

namespace basin {

/// What a table says, whatever its formatting: `kind` ("contrast", "hypothesis") and its entries, each a line
/// KEY = VALUE, sorted by bytes and joined by line ends. Keys are dotted (base.batch_size), values JSON, every number the
/// shortest text of its float64 that reads back exactly (2048.0, 0.2, 1e-05), as Python's json.dumps(float(x)); `exploratory` is
/// left out.
std::string canonical_text(const std::string& kind, const std::vector<TomlEntry>& entries);

}  // namespace basin
