// defines: DamagedError, for a file whose contents are not whole.
#pragma once

#include <string>

#include "core/error.h"

namespace basin {

/// Truncated or corrupted: another copy of the file may serve. Not for one that is foreign, of another version, or that
/// the system didn't let us read.
struct DamagedError : IoError {
  using IoError::IoError;
};

}  // namespace basin
