// defines: Clock and seconds_since(), wall time that never jumps.
#pragma once

#include <chrono>

namespace basin {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace basin
