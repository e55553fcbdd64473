#include "optim/kernels/kernel_tables.h"

#ifdef BASIN_CUDA

namespace basin {
namespace {

at::Tensor upload(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

std::vector<int64_t> pointers_in(const TensorLists& lists) {
  std::vector<int64_t> pointers;
  for (const auto* list : {&lists.weights, &lists.gradients, &lists.first, &lists.second}) {
    for (size_t i = 0; i < lists.weights.size(); ++i)
      pointers.push_back(list->empty() ? 0 : reinterpret_cast<int64_t>((*list)[i].data_ptr()));
  }
  return pointers;
}

}  // namespace

void KernelTables::set(const TensorLists& lists, const std::vector<Treatment>& treatments) {
  for (const at::Tensor& weights : lists.weights) {
    TORCH_CHECK(weights.scalar_type() == lists.weights.front().scalar_type() &&
                    weights.device() == lists.weights.front().device(),
                "parameters of several types or devices");
  }
  std::vector<int64_t> numel;
  for (const at::Tensor& weights : lists.weights) numel.push_back(weights.numel());
  const at::Device device = lists.weights.front().device();
  type_ = lists.weights.front().scalar_type();
  if (numel != numel_then_) {
    numel_then_ = numel;
    lay_out(lists.weights, treatments);
  }
  std::vector<int64_t> pointers = pointers_in(lists);
  if (pointers == pointers_then_) return;
  pointers_ = upload(pointers, device);
  pointers_then_ = std::move(pointers);
}

void KernelTables::lay_out(const std::vector<at::Tensor>& weights, const std::vector<Treatment>& treatments) {
  std::vector<int64_t> tensor_of_chunk, first_chunk{0};
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t chunks = std::max<int64_t>(1, (weights[i].numel() + kernel_chunk() - 1) / kernel_chunk());
    tensor_of_chunk.insert(tensor_of_chunk.end(), static_cast<size_t>(chunks), static_cast<int64_t>(i));
    first_chunk.push_back(first_chunk.back() + chunks);
  }
  chunks_ = first_chunk.back();
  const at::Device device = weights.front().device();
  tensor_of_chunk_ = upload(tensor_of_chunk, device);
  first_chunk_ = upload(first_chunk, device);
  numel_ = upload(numel_then_, device);
  const auto bytes = static_cast<int64_t>(treatments.size() * sizeof(Treatment));
  treatments_ = at::from_blob(const_cast<Treatment*>(treatments.data()), {bytes}, at::kByte).to(device);
  const at::TensorOptions numbers = at::TensorOptions(at::kDouble).device(device);
  norms_ = at::zeros({chunks_, kernel_partial_size()}, numbers);
  sums_ = at::zeros_like(norms_);
  ratios_ = at::zeros({static_cast<int64_t>(weights.size())}, numbers);
}

DeviceTables KernelTables::on_device() const {
  return {static_cast<int64_t>(numel_then_.size()),
          chunks_,
          tensor_of_chunk_.const_data_ptr<int64_t>(),
          first_chunk_.const_data_ptr<int64_t>(),
          numel_.const_data_ptr<int64_t>(),
          reinterpret_cast<void* const*>(pointers_.const_data_ptr<int64_t>()),
          reinterpret_cast<const Treatment*>(treatments_.const_data_ptr<uint8_t>())};
}

}  // namespace basin

#else

namespace basin {

void KernelTables::set(const TensorLists&, const std::vector<Treatment>&) {
  TORCH_CHECK(false, "built without CUDA: no optimiser can update parameters on a GPU");
}
void momentum_kernels(const MomentumRule&, const StepScalars&, KernelTables&) {}
void moment_kernels(const MomentRule&, const StepScalars&, KernelTables&) {}
void sign_kernels(const SignRule&, const StepScalars&, KernelTables&) {}
void difference_kernel(KernelTables&) {}
at::Tensor kernel_report(KernelTables&) { return {}; }

}  // namespace basin

#endif
