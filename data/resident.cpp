#include "data/resident.h"

namespace basin {
namespace {

constexpr int64_t kLevels = 256;  // of a byte

Split on_device(const Split& split, at::Device device) {
  Split there = split;
  if (!split.labels.defined()) return there;
  there.labels = split.labels.to(device);
  there.inputs = split.inputs.to(device);
  if (!device.is_cpu() && split.has_pictures())
    there.inputs = there.inputs.contiguous(at::MemoryFormat::ChannelsLast);
  return there;
}

}  // namespace

Dataset on_device(const Dataset& data, at::Device device) {
  Dataset there = data;
  if (data.levels.defined()) there.levels = data.levels.to(device);
  for (Split* split : {&there.train, &there.validation, &there.test}) *split = on_device(*split, device);
  return there;
}

at::Tensor gathered_inputs(const Dataset& data, const Split& split, const at::Tensor& index,
                           at::ScalarType dtype) {
  const int64_t channels = split.inputs.size(1);
  const at::Tensor first_level =
      at::arange(0, channels * kLevels, kLevels, at::TensorOptions(at::kInt).device(split.inputs.device()));
  // Pixels outermost: [n, H, W, C].
  const at::Tensor bytes = split.inputs.permute({0, 2, 3, 1}).index_select(0, index);
  const at::Tensor level = bytes.to(at::kInt).add_(first_level);
  const at::Tensor inputs = data.levels.to(dtype).view(-1).index_select(0, level.view(-1));
  return inputs.view(bytes.sizes()).permute({0, 3, 1, 2});
}

}  // namespace basin
