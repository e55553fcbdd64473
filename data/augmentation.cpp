#include "data/augmentation.h"

#include "core/seed.h"

namespace basin {
namespace {

uint64_t splitmix64(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + (counter + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

int64_t shift_from(uint64_t random, int64_t padding) {
  const uint64_t choices = static_cast<uint64_t>(2 * padding + 1);
  return static_cast<int64_t>(((random >> 32) * choices) >> 32) - padding;
}

}  // namespace

CropAndFlip draw_crop_and_flip(uint64_t stream_seed, int64_t position, int64_t padding) {
  const uint64_t first = 3 * static_cast<uint64_t>(position);
  return {shift_from(splitmix64(stream_seed, first), padding), shift_from(splitmix64(stream_seed, first + 1), padding),
          (splitmix64(stream_seed, first + 2) >> 63) != 0};
}

at::Tensor crop_and_flip(const at::Tensor& inputs, uint64_t master_seed, const std::vector<int64_t>& positions,
                         int64_t padding) {
  const int64_t n = inputs.size(0), height = inputs.size(2), width = inputs.size(3);
  TORCH_CHECK(static_cast<int64_t>(positions.size()) == n, "one stream position an example");
  const uint64_t seed = derive_seed(master_seed, "augmentation");
  // Source rows and columns in the padded image; one gather does the rest, on any device.
  at::Tensor rows = at::empty({n, height, 1}, at::kLong), columns = at::empty({n, 1, width}, at::kLong);
  auto *row = rows.mutable_data_ptr<int64_t>(), *column = columns.mutable_data_ptr<int64_t>();
  for (const int64_t position : positions) {
    const CropAndFlip draw = draw_crop_and_flip(seed, position, padding);
    for (int64_t y = 0; y < height; ++y) *row++ = y + draw.dy + padding;
    for (int64_t x = 0; x < width; ++x) *column++ = (draw.flip ? width - 1 - x : x) + draw.dx + padding;
  }
  const auto device = inputs.device();
  const at::Tensor examples = at::arange(n, at::TensorOptions(at::kLong).device(device)).view({n, 1, 1});
  const at::Tensor padded = at::constant_pad_nd(inputs, {padding, padding, padding, padding}).permute({0, 2, 3, 1});
  const at::Tensor gathered = at::index(padded.contiguous(), {examples, rows.to(device), columns.to(device)});
  return gathered.permute({0, 3, 1, 2}).contiguous(inputs.suggest_memory_format());
}

}  // namespace basin
