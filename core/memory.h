// defines: allocated_bytes(), what the process holds on a device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace basin {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// Bytes handed out by malloc and not freed (CPU), or by torch's caching allocator (CUDA). Differences tell
/// what was kept; other threads' allocations count too.
int64_t allocated_bytes(c10::Device device);

}  // namespace basin
