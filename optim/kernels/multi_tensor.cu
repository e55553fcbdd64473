// The steps of multi_tensor.h as kernels: all tensors in one launch per pass, nothing read back by the host.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>

#include "optim/kernels/kernel_tables.h"

namespace basin {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kChunk = 1 << 15;  // elements of a block: 25 M parameters are some 760 blocks
constexpr int kUnrolled = 4;         // loads in flight per thread

/// Sums of a chunk, of a tensor, or of a thread's share.
struct Partial {
  double weight, gradient, direction, change;  // no initial values: shared memory takes none
};

__device__ Partial operator+(const Partial& a, const Partial& b) {
  return {a.weight + b.weight, a.gradient + b.gradient, a.direction + b.direction, a.change + b.change};
}

__device__ Partial shuffled_down(const Partial& a, int by) {
  return {__shfl_down_sync(~0U, a.weight, by), __shfl_down_sync(~0U, a.gradient, by),
          __shfl_down_sync(~0U, a.direction, by), __shfl_down_sync(~0U, a.change, by)};
}

/// The sum over all threads of the block, in a fixed order; every thread gets it.
__device__ Partial block_sum(Partial mine) {
  __shared__ Partial of_warps[kThreads / 32];
  __shared__ Partial total;
  for (int by = 16; by > 0; by /= 2) mine = mine + shuffled_down(mine, by);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    Partial sum = of_warps[0];
    for (int w = 1; w < kThreads / 32; ++w) sum = sum + of_warps[w];
    total = sum;
  }
  __syncthreads();
  const Partial result = total;
  __syncthreads();  // before the next sum writes
  return result;
}

__device__ TensorSums as_sums(const Partial& p) { return {p.weight, p.gradient, p.direction, p.change}; }

/// The sum over the tensor's chunks, in their order: the same in every block of the tensor.
__device__ Partial tensor_sum(const DeviceTables& tables, const Partial* partials, int64_t tensor) {
  Partial mine{};
  for (int64_t c = tables.first_chunk[tensor] + threadIdx.x; c < tables.first_chunk[tensor + 1];
       c += kThreads)
    mine = mine + partials[c];
  return block_sum(mine);
}

template <class T>
struct Pointers {
  T *w, *g, *first, *second;
};

template <class T>
__device__ Pointers<T> pointers(const DeviceTables& tables, int64_t tensor) {
  const auto list = [&](int which) {
    return static_cast<T*>(tables.pointers[which * tables.tensors + tensor]);
  };
  return {list(0), list(1), list(2), list(3)};
}

/// One element of each list.
template <class T>
struct Loaded {
  T w, g, first, second;
};

/// body(i, load(i)) for the elements of this block's chunk, neighbours to neighbouring threads, several loads in flight
/// before the first store: the compiler can't know that lists don't overlap.
template <class Load, class Body>
__device__ void over_chunk(const DeviceTables& tables, int64_t tensor, Load load, Body body) {
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) - tables.first_chunk[tensor]) * kChunk;
  const int64_t end = begin + kChunk < tables.numel[tensor] ? begin + kChunk : tables.numel[tensor];
  for (int64_t first = begin + threadIdx.x; first < end; first += kThreads * kUnrolled) {
    decltype(load(first)) loaded[kUnrolled];
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j)
      if (first + j * kThreads < end) loaded[j] = load(first + j * kThreads);
#pragma unroll
    for (int j = 0; j < kUnrolled; ++j)
      if (first + j * kThreads < end) body(first + j * kThreads, loaded[j]);
  }
}

/// What the report of a step is made of: this block's sums, and the ratio once per tensor.
__device__ void note_sums(const DeviceTables& tables, int64_t tensor, const Partial& sums, double ratio,
                          Partial* partials, double* ratios) {
  if (threadIdx.x != 0) return;
  partials[blockIdx.x] = sums;
  if (blockIdx.x == tables.first_chunk[tensor]) ratios[tensor] = ratio;
}

/// What a trust ratio is made of; fills the buffer first where the ratio is of the buffer.
template <class T>
__global__ void __launch_bounds__(kThreads)
    momentum_norms(DeviceTables tables, MomentumRule rule, StepScalars step, Partial* partials) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const auto element = rule.element(1, TensorSums(), tables.treatments[tensor], step);
  const bool fills = rule.buffer_first();
  Partial sums{};
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], fills ? p.first[i] : T(0), T(0)}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w, g = x.g;
    double d = element.direction(w, g);
    if (fills) p.first[i] = static_cast<T>(d = element.next_buffer(x.first, d));
    sums.weight += w * w;
    sums.gradient += g * g;
    sums.direction += d * d;
  });
  sums = block_sum(sums);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
}

/// The ratio that a tensor is stepped with. `known` are its own sums; every thread of the block goes the same way, so the sums over
/// other tensors' chunks are the block's together.
template <class Rule>
__device__ double ratio_of(const DeviceTables& tables, const Rule& rule, const StepScalars& step,
                           const Partial* norms, int64_t tensor, const TensorSums& known) {
  if (!rule.adaptive) return rule.ratio(known, tables.treatments[tensor], step);
  return stepped_ratio(tables.treatments, tables.tensors, tensor, [&](int64_t of) {
    const TensorSums sums = of == tensor ? known : as_sums(tensor_sum(tables, norms, of));
    return rule.ratio(sums, tables.treatments[of], step);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    momentum_update(DeviceTables tables, MomentumRule rule, StepScalars step, const Partial* norms,
                    Partial* partials, double* ratios) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const Treatment treatment = tables.treatments[tensor];
  const TensorSums known = rule.adaptive ? as_sums(tensor_sum(tables, norms, tensor)) : TensorSums();
  const double ratio = ratio_of(tables, rule, step, norms, tensor, known);
  auto element = rule.element(ratio, known, treatment, step);
  if (rule.buffer_first()) element.keep = 1, element.add = 0;
  Partial sums{};
  const bool buffered = p.first != nullptr;
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], buffered ? p.first[i] : T(0), T(0)}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w, g = x.g, d = element.direction(w, g);
    double v = 0;
    if (buffered) p.first[i] = static_cast<T>(v = element.next_buffer(x.first, d));
    const double change = element.change(w, v, d);
    p.w[i] = static_cast<T>(w - change);
    sums.weight += w * w;
    sums.gradient += g * g;
    sums.change += change * change;
  });
  note_sums(tables, tensor, block_sum(sums), ratio, partials, ratios);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sign_update(DeviceTables tables, SignRule rule, StepScalars step, Partial* partials, double* ratios) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const auto element = rule.element(tables.treatments[tensor], step);
  Partial sums{};
  const bool averaged = p.first != nullptr;
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], averaged ? p.first[i] : T(0), T(0)}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w, g = x.g, m = x.first;
    if (averaged) p.first[i] = static_cast<T>(element.next_average(m, g));
    const double change = element.change(w, element.direction(m, g));
    p.w[i] = static_cast<T>(w - change);
    sums.weight += w * w;
    sums.gradient += g * g;
    sums.change += change * change;
  });
  note_sums(tables, tensor, block_sum(sums), 1, partials, ratios);
}

template <class T>
__global__ void __launch_bounds__(kThreads) gradient_norms(DeviceTables tables, Partial* partials) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  Partial sums{};
  over_chunk(
      tables, tensor, [&](int64_t i) { return p.g[i]; },
      [&](int64_t, T g) { sums.gradient += static_cast<double>(g) * g; });
  sums = block_sum(sums);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
}

/// The step with the norm of all gradients in it, where the rule asks for one: every block adds the same chunks.
__device__ StepScalars with_gradient_norm(const DeviceTables& tables, const MomentRule& rule,
                                          StepScalars step, const Partial* gradients) {
  if (!rule.needs_gradient_norm()) return step;
  Partial mine{};
  for (int64_t c = threadIdx.x; c < tables.chunks; c += kThreads) mine = mine + gradients[c];
  step.gradient_norm = std::sqrt(block_sum(mine).gradient);
  return step;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    moment_advance(DeviceTables tables, MomentRule rule, StepScalars step, const Partial* gradients,
                   Partial* partials) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const auto element =
      rule.element(1, tables.treatments[tensor], with_gradient_norm(tables, rule, step, gradients));
  Partial sums{};
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], p.first[i], p.second[i]}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w, g = x.g, d = element.corrected_gradient(w, g);
    const double m = element.next_first(x.first, d), v = element.next_second(x.second, d);
    p.first[i] = static_cast<T>(m);
    p.second[i] = static_cast<T>(v);
    const double u = element.direction(w, m, v);
    sums.weight += w * w;
    sums.gradient += g * g;
    sums.direction += u * u;
  });
  sums = block_sum(sums);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    moment_apply(DeviceTables tables, MomentRule rule, StepScalars step, Partial* norms, Partial* partials,
                 double* ratios) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const Treatment treatment = tables.treatments[tensor];
  const TensorSums known = as_sums(tensor_sum(tables, norms, tensor));
  const double ratio = ratio_of(tables, rule, step, norms, tensor, known);
  const auto element = rule.element(ratio, treatment, step);
  Partial sums{};
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], T(0), p.first[i], p.second[i]}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w;
    const double change = element.change(w, element.direction(w, x.first, x.second));
    p.w[i] = static_cast<T>(w - change);
    sums.change += change * change;
  });
  sums = block_sum(sums);
  Partial all = norms[blockIdx.x];
  all.change = sums.change;
  note_sums(tables, tensor, all, ratio, partials, ratios);
}

/// Both at once, where no trust ratio stands between them: moments are read and written once. `gradients` are not `partials`, which
/// other blocks write meanwhile.
template <class T>
__global__ void __launch_bounds__(kThreads)
    moment_update(DeviceTables tables, MomentRule rule, StepScalars step, const Partial* gradients,
                  Partial* partials, double* ratios) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  const auto element =
      rule.element(1, tables.treatments[tensor], with_gradient_norm(tables, rule, step, gradients));
  Partial sums{};
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], p.first[i], p.second[i]}; };
  over_chunk(tables, tensor, load, [&](int64_t i, const Loaded<T>& x) {
    const double w = x.w, g = x.g, d = element.corrected_gradient(w, g);
    const T m = static_cast<T>(element.next_first(x.first, d));
    const T v = static_cast<T>(element.next_second(x.second, d));
    p.first[i] = m;
    p.second[i] = v;
    const double change =
        element.change(w, element.direction(w, m, v));  // of what is stored, as moment_apply
    p.w[i] = static_cast<T>(w - change);
    sums.weight += w * w;
    sums.gradient += g * g;
    sums.change += change * change;
  });
  note_sums(tables, tensor, block_sum(sums), 1, partials, ratios);
}

/// The first list less the second, as if it were what changed.
template <class T>
__global__ void __launch_bounds__(kThreads) differences(DeviceTables tables, Partial* partials) {
  const int64_t tensor = tables.tensor_of_chunk[blockIdx.x];
  const Pointers<T> p = pointers<T>(tables, tensor);
  Partial sums{};
  const auto load = [&](int64_t i) { return Loaded<T>{p.w[i], p.g[i], T(0), T(0)}; };
  over_chunk(tables, tensor, load, [&](int64_t, const Loaded<T>& x) {
    const double difference = static_cast<double>(x.w) - static_cast<double>(x.g);
    sums.change += difference * difference;
  });
  sums = block_sum(sums);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
}

/// One row per tensor: weight, gradient, direction, change, ratio.
__global__ void __launch_bounds__(kThreads)
    collect_report(DeviceTables tables, const Partial* partials, const double* ratios, double* report) {
  const Partial sums = tensor_sum(tables, partials, blockIdx.x);
  if (threadIdx.x != 0) return;
  double* row = report + 5 * static_cast<int64_t>(blockIdx.x);
  row[0] = sums.weight;
  row[1] = sums.gradient;
  row[2] = sums.direction;
  row[3] = sums.change;
  row[4] = ratios[blockIdx.x];
}

Partial* partials_of(const at::Tensor& memory) {
  return reinterpret_cast<Partial*>(memory.mutable_data_ptr<double>());
}

/// launch(T{}) for the tables' type.
template <class Launch>
void by_type(const KernelTables& tables, Launch launch) {
  tables.is_double() ? launch(double()) : launch(float());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

int64_t kernel_chunk() { return kChunk; }
int64_t kernel_partial_size() { return sizeof(Partial) / sizeof(double); }

void momentum_kernels(const MomentumRule& rule, const StepScalars& step, KernelTables& tables) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  const DeviceTables on_device = tables.on_device();
  const auto blocks = static_cast<unsigned>(on_device.chunks);
  Partial *norms = partials_of(tables.norms()), *sums = partials_of(tables.sums());
  double* ratios = tables.ratios().mutable_data_ptr<double>();
  by_type(tables, [&](auto type) {
    using T = decltype(type);
    if (rule.adaptive) momentum_norms<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, norms);
    momentum_update<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, norms, sums, ratios);
  });
}

void moment_kernels(const MomentRule& rule, const StepScalars& step, KernelTables& tables) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  const DeviceTables on_device = tables.on_device();
  const auto blocks = static_cast<unsigned>(on_device.chunks);
  Partial *norms = partials_of(tables.norms()), *sums = partials_of(tables.sums());
  double* ratios = tables.ratios().mutable_data_ptr<double>();
  by_type(tables, [&](auto type) {
    using T = decltype(type);
    Partial* gradients = rule.adaptive ? sums : norms;  // what the next kernel doesn't write
    if (rule.needs_gradient_norm()) gradient_norms<T><<<blocks, kThreads, 0, stream>>>(on_device, gradients);
    if (!rule.adaptive) {
      moment_update<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, gradients, sums, ratios);
      return;
    }
    moment_advance<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, sums, norms);
    moment_apply<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, norms, sums, ratios);
  });
}

void sign_kernels(const SignRule& rule, const StepScalars& step, KernelTables& tables) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  const DeviceTables on_device = tables.on_device();
  const auto blocks = static_cast<unsigned>(on_device.chunks);
  Partial* sums = partials_of(tables.sums());
  double* ratios = tables.ratios().mutable_data_ptr<double>();
  by_type(tables, [&](auto type) {
    using T = decltype(type);
    sign_update<T><<<blocks, kThreads, 0, stream>>>(on_device, rule, step, sums, ratios);
  });
}

void difference_kernel(KernelTables& tables) {
  const auto stream = at::cuda::getCurrentCUDAStream();
  const DeviceTables on_device = tables.on_device();
  const auto blocks = static_cast<unsigned>(on_device.chunks);
  Partial* sums = partials_of(tables.sums());
  by_type(tables,
          [&](auto type) { differences<decltype(type)><<<blocks, kThreads, 0, stream>>>(on_device, sums); });
}

at::Tensor kernel_report(KernelTables& tables) {
  const DeviceTables on_device = tables.on_device();
  const at::Tensor report = at::empty({on_device.tensors, 5}, tables.ratios().options());
  collect_report<<<static_cast<unsigned>(on_device.tensors), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      on_device, partials_of(tables.sums()), tables.ratios().const_data_ptr<double>(),
      report.mutable_data_ptr<double>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return report.cpu();
}

}  // namespace basin
