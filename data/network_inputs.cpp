#include "data/network_inputs.h"

#include "data/resident.h"

namespace basin {
namespace {

/// Writes channels-last through a table of the 256 values of each channel.
template <class T>
void fill_inputs(const Dataset& data, const Split& split, const int64_t* index, int64_t n, T* out) {
  const int64_t channels = split.inputs.size(1), plane = split.inputs.size(2) * split.inputs.size(3);
  const at::Tensor levels = data.levels.to(c10::CppTypeToScalarType<T>::value);
  const T* table = levels.const_data_ptr<T>();
  const auto* images = split.inputs.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t* image = images + index[i] * channels * plane;
    T* row = out + i * channels * plane;
    for (int64_t c = 0; c < channels; ++c) {
      const T* value = table + c * 256;
      for (int64_t p = 0; p < plane; ++p) row[p * channels + c] = value[image[c * plane + p]];
    }
  }
}

}  // namespace

at::Tensor network_inputs(const Dataset& data, const Split& split, const at::Tensor& index,
                          at::ScalarType dtype, at::Device device) {
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble, "network inputs are float32 or float64");
  TORCH_CHECK(index.device().is_cpu() && index.scalar_type() == at::kLong, "index must be int64 on the CPU");
  if (!split.has_pictures())
    return gathered_inputs(data, split, index.to(split.inputs.device()), dtype).to(device);
  if (!split.inputs.device().is_cpu())
    return gathered_inputs(data, split, index.to(split.inputs.device()), dtype);
  const at::Tensor rows = index.contiguous();
  const int64_t n = rows.numel();
  TORCH_CHECK(n == 0 || (rows.min().item<int64_t>() >= 0 && rows.max().item<int64_t>() < split.size()),
              "example index out of range");
  at::Tensor inputs = at::empty({n, split.inputs.size(1), split.inputs.size(2), split.inputs.size(3)},
                                at::TensorOptions(dtype).memory_format(at::MemoryFormat::ChannelsLast));
  const auto* first = rows.const_data_ptr<int64_t>();
  if (dtype == at::kFloat)
    fill_inputs(data, split, first, n, inputs.mutable_data_ptr<float>());
  else
    fill_inputs(data, split, first, n, inputs.mutable_data_ptr<double>());
  return inputs.to(device);
}

}  // namespace basin
