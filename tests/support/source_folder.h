// defines: source_folder(), where the checkout is that tests read studies, documents and scripts of.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace basin::testing {

/// BASIN_SOURCE_DIR, which ctest sets.
inline std::string source_folder() {
  const char* folder = std::getenv("BASIN_SOURCE_DIR");
  if (!folder) throw std::runtime_error("BASIN_SOURCE_DIR isn't set: it names the checkout (ctest sets it)");
  return folder;
}

}  // namespace basin::testing
