#include "ranks/device_sums.h"

#ifdef BASIN_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <cstdlib>

namespace basin {

c10::intrusive_ptr<c10d::Backend> nccl_backend([[maybe_unused]] const c10::intrusive_ptr<c10d::Store>& store,
                                               [[maybe_unused]] int rank, [[maybe_unused]] int size,
                                               [[maybe_unused]] std::chrono::milliseconds timeout) {
#ifdef USE_C10D_NCCL
  // Its own watch would end the process by std::terminate; ours names who is lost.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
#else
  return {};
#endif
}

std::string gpu_identity([[maybe_unused]] c10::Device device) {
#ifdef BASIN_CUDA
  const auto& bytes = at::cuda::getDeviceProperties(device.index())->uuid.bytes;
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
#else
  return "none";
#endif
}

}  // namespace basin
