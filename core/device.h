// defines: MemoryWatch, the memory that tensors took on a device during its lifetime; wait_for() what the device has to do.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace basin {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// Bytes of tensors allocated on `device` since its construction. On a CPU it counts those of this thread,
/// without the scratch memory of kernels; on a GPU those of the caching allocator, whose peak statistics are
/// reset. At most one may exist per thread at a time.
class MemoryWatch {
 public:
  explicit MemoryWatch(c10::Device device);
  ~MemoryWatch();
  int64_t held() const;  // now; what was allocated before and is freed since doesn't count
  int64_t peak() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Waits for a device that works by itself: before and after a time is taken.
void wait_for(c10::Device device);

}  // namespace basin
