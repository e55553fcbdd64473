// defines: write_text() and truncate_file(), what tests do to files.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace basin::testing {

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Cuts a file to a share of its length.
inline void truncate_file(const std::string& path, double share) {
  const auto length = static_cast<double>(std::filesystem::file_size(path));
  std::filesystem::resize_file(path, static_cast<uintmax_t>(length * share));
}

}  // namespace basin::testing
