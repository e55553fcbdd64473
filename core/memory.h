// defines: MemoryWatch, what tensors took while it lived.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace basin {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;

/// Bytes of tensors allocated on `device`, from its making on. On a CPU those of this thread, and not the
/// scratch of kernels; on a GPU those of the caching allocator, whose peak statistics start anew. At most one
/// lives at a time in a thread.
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

}  // namespace basin
