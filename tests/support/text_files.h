// defines: write_text(), truncate_file() and without_seal(), what tests do to files.
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

/// A file of before there were seals, from the bytes of an HDF5 file of ours (io/seal.h).
inline std::string without_seal(const std::string& bytes) { return bytes.substr(512); }

}  // namespace basin::testing
