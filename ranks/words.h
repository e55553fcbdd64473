// defines: bytes_of() and text_of(), words as the store of the ranks keeps them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
inline std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace basin
