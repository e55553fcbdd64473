// defines: nccl_backend() and gpu_identity(): what sums tensors of GPUs over ranks, and which GPU a rank has.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace basin {

/// NCCL between ranks that each have a GPU of their own; null in a build without it.
c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                               int size, std::chrono::milliseconds timeout);

/// The GPU's UUID: the same for two processes that see one GPU, whatever number each has for it. "none" in a build without GPUs.
std::string gpu_identity(c10::Device device);

}  // namespace basin
