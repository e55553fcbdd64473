// defines: environment(), what a test needs of its surroundings, and source_folder(), where the checkout is that tests
// read studies, documents and scripts of.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace basin::testing {

/// The value of a variable that must be set: ctest sets those whose names begin with BASIN_.
inline std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (!value) throw std::runtime_error(name + " isn't set: run the tests by ctest");
  return value;
}

inline std::string source_folder() { return environment("BASIN_SOURCE_DIR"); }

}  // namespace basin::testing
