#include "core/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "core/error.h"

// A coverage build has it: without the call its counts are written only when destructors run at the end.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): gcc chose the name
extern "C" __attribute__((weak)) void __gcov_exit();

namespace basin {

void bind_options(OptionTable& table, RuntimeOptions& options) {
  table.within({.role = OptionRole::execution}, [&](OptionTable& t) {
    t.add("device", options.device, one_of({"auto", "cpu", "cuda"}), "device that networks run on").costs();
    t.add("threads", options.threads, at_least(0),
          "threads per process; 0: OMP_NUM_THREADS, else one per core (one thread for each of several "
          "workers)");
    t.add("progress", options.progress, anything(), "progress lines on stderr");
    t.add("cuda_graph", options.cuda_graph, anything(),
          "on a GPU: capture a batch's gradient as a CUDA graph and replay it, where possible");
  });
}

void tune_allocator() {
  // Activations come and go every step: giving their pages back to the system costs more than the arithmetic.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 2147483647);
  mallopt(M_TOP_PAD, 64 << 20);
  // torch asks for huge pages for tensors from 2 MB on, where the system gives them to who asks: a pass over many such tensors, as an
  // optimiser's, reads and writes them a twentieth faster. Read at the first of them.
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
}

namespace {

int64_t threads_of(const RuntimeOptions& options) {
  if (options.threads > 0) return options.threads;
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const int64_t of_environment = asked ? std::strtoll(asked, nullptr, 10) : 0;
  return of_environment > 0 ? of_environment : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

c10::Device apply_runtime(const RuntimeOptions& options) {
  // What deterministic cuBLAS needs; torch looks once, at its first product.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  const bool cuda_there = at::hasCUDA() && at::getNumGPUs() > 0;
  if (options.device == "cuda" && !cuda_there)
    throw DeviceError("device = \"cuda\", but this build or machine has no CUDA device");
  at::set_num_threads(static_cast<int>(threads_of(options)));
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(true, false);
  // Else every tensor that is made is filled with NaN first, a tenth of the training time.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuBLAS(false);  // an eigenvalue to 1e-3 cannot stand TF32
  context.setAllowTF32CuDNN(false);
  const bool use_cuda = cuda_there && options.device != "cpu";
  return c10::Device(use_cuda ? at::kCUDA : at::kCPU);
}

void end_process(int exit_code) {
  std::cout.flush();
  std::fflush(nullptr);
  if (__gcov_exit != nullptr) __gcov_exit();
  ::_exit(exit_code);
}

}  // namespace basin
