// defines: nearest_name(), for "did you mean ...?".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace basin {

/// The first of `known` with the fewest single-character edits from `typed`; empty where that takes more than
/// `at_most`.
std::string nearest_name(const std::string& typed, const std::vector<std::string>& known, size_t at_most);

}  // namespace basin
