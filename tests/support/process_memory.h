// defines: of_this_process(), what the kernel counts of this process' memory.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace basin::testing {

/// Bytes of "VmRSS:" (resident, pages of mapped files among them) or "VmHWM:" (the most there were); -1 where there is no such line.
inline int64_t of_this_process(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(key.size())) * 1024;
  }
  return -1;
}

}  // namespace basin::testing
