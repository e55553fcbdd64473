// defines: RuntimeOptions and their application to the process: threads, determinism, allocator, device; end_process().
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "core/options.h"

namespace basin {

/// How a process executes; never part of a run's identity (run_id).
struct RuntimeOptions {
  std::string device = "auto";  // CUDA where a build and a device are there, else CPU
  int64_t threads = 0;          // 0: as many as cores
  bool progress = true;
  bool cuda_graph = true;  // where there can be one
};
void bind_options(OptionTable& table, RuntimeOptions& options);

/// Must be the first call in main, before any thread or large allocation: keeps glibc from returning memory to the system
/// (M_MMAP_MAX = 0, large M_TRIM_THRESHOLD), worth 1.5 to 2 x in training speed on CPU, and lets torch ask for huge pages.
void tune_allocator();

/// Sets intra-op threads, deterministic algorithms, TF32 off. Throws DeviceError for a device that is not there.
c10::Device apply_runtime(const RuntimeOptions& options);

/// Ends this process when what it printed is written, without destructors of statics: in a fork they are the parent's, other libraries'
/// threads may still run, and taking libtorch's operators apart takes a third of a short process's time.
[[noreturn]] void end_process(int exit_code);

}  // namespace basin
