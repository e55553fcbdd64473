// defines: reading files that libhdf5 may not survive, and sealing them.
#pragma once

#include <string>

#include "io/seal.h"

namespace basin {

/// Reads all groups, attributes and datasets of the HDF5 file in a child process, with a time limit of 10 s and a second for each
/// 10 MB; DamagedError where it crashes, doesn't end or libhdf5 refuses. Cost: one fork and one reading of the file.
void survey(const std::string& path);

/// Seals the file as it is now: one of an older version, or one edited on purpose. Returns the
/// new seal; DamagedError where libhdf5 can't read all of it, IoError where it isn't a Basin
/// file. The old file stays where that fails.
Seal reseal(const std::string& path);

}  // namespace basin
