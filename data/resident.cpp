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

/// In float64.
at::Tensor normalised(const Dataset& data, const at::Tensor& rows) {
  std::vector<int64_t> by_channel(static_cast<size_t>(rows.dim()), 1);
  if (rows.dim() > 1) by_channel[1] = rows.size(1);
  const auto column = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble).to(rows.device()).view(by_channel);
  };
  return rows.to(at::kDouble).sub_(column(data.mean)).div_(column(data.std));
}

/// Numbers of any shape, and tokens.
at::Tensor gathered_numbers(const Dataset& data, const Split& split, const at::Tensor& index,
                            at::ScalarType dtype) {
  const at::Tensor rows = split.inputs.index_select(0, index);
  if (!rows.is_floating_point()) return rows;
  return (data.mean.empty() ? rows : normalised(data, rows)).to(dtype);
}

}  // namespace

void normalise_numbers(Dataset& data) {
  if (data.train.has_pictures() || !data.train.inputs.is_floating_point() || data.mean.empty()) return;
  for (Split* split : {&data.train, &data.validation, &data.test})
    if (split->labels.defined()) split->inputs = normalised(data, split->inputs);
  data.mean.clear();
  data.std.clear();
}

Dataset on_device(const Dataset& data, at::Device device) {
  Dataset there = data;
  if (data.levels.defined()) there.levels = data.levels.to(device);
  for (Split* split : {&there.train, &there.validation, &there.test}) *split = on_device(*split, device);
  if (!device.is_cpu()) normalise_numbers(there);
  return there;
}

at::Tensor gathered_inputs(const Dataset& data, const Split& split, const at::Tensor& index,
                           at::ScalarType dtype) {
  if (!split.has_pictures()) return gathered_numbers(data, split, index, dtype);
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
