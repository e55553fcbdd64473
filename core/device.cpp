#include "core/device.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#ifdef BASIN_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace basin {
namespace {

/// Torch's CPU allocator reports to it while a guard has it installed.
struct Ledger : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    held += bytes;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t held = 0, peak = 0;
};

/// The current one where none is named.
c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : c10::impl::VirtualGuardImpl(device.type()).getDevice().index();
}

#ifdef BASIN_CUDA
c10::CachingAllocator::Stat allocated(c10::Device device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index_of(device));
  return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}
#endif

}  // namespace

struct MemoryWatch::State {
  explicit State(c10::Device device) : device(device), guard(c10::DebugInfoKind::PROFILER_STATE, ledger) {}
  c10::Device device;
  std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>();
  c10::DebugInfoGuard guard;
  int64_t held_before = 0;
};

MemoryWatch::MemoryWatch(c10::Device device) : state_(std::make_unique<State>(device)) {
#ifdef BASIN_CUDA
  if (!device.is_cuda()) return;
  c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
  state_->held_before = allocated(device).current;
#endif
}

MemoryWatch::~MemoryWatch() = default;

int64_t MemoryWatch::held() const {
#ifdef BASIN_CUDA
  if (state_->device.is_cuda()) return allocated(state_->device).current - state_->held_before;
#endif
  return state_->ledger->held;
}

int64_t MemoryWatch::peak() const {
#ifdef BASIN_CUDA
  if (state_->device.is_cuda()) return allocated(state_->device).peak - state_->held_before;
#endif
  return state_->ledger->peak;
}

void wait_for(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(index_of(device));
}

}  // namespace basin
