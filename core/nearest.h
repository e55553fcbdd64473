// defines: contains(), whether a list has a name; nearest_name(), did_you_mean() and unknown_name(): what is said of one that it lacks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace basin {

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// The first of `known` with the fewest single-character edits from `typed`; empty where that takes more than
/// `at_most`.
std::string nearest_name(const std::string& typed, const std::vector<std::string>& known, size_t at_most);

/// "; did you mean \"NAME\"?" where one of `known` is within two edits, or a third of what was typed; else empty.
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known);

/// unknown WHAT "TYPED"; did you mean "NEAR"? known: a, b, c
std::string unknown_name(const std::string& what, const std::string& typed,
                         const std::vector<std::string>& known);

}  // namespace basin
