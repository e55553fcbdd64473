#include "core/memory.h"

#include <malloc.h>

#ifdef BASIN_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace basin {

int64_t allocated_bytes(c10::Device device) {
#ifdef BASIN_CUDA
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].current;
  }
#endif
  (void)device;
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace basin
