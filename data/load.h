// defines: load_dataset(), a data set by its name.
#pragma once

#include "core/options.h"
#include "data/dataset.h"

namespace basin {

void bind_options(OptionTable& table, DataOptions& options);

/// Reads the set, takes the validation share, then the limits. An example belongs to validation where the first
/// 8 bytes of the SHA-256 of its inputs' bytes, as a big-endian fraction of 2^64, are below `validation`:
/// whatever the order of the file, and the same for identical images. Mean and (population) standard
/// deviation are summed exactly over what remains in `train`. Throws DataError (missing, truncated, foreign,
/// wrong checksum) in one line naming the file; ConfigError for options that do not fit the set.
Dataset load_dataset(const DataOptions& options);

}  // namespace basin
