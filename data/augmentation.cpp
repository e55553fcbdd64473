#include "data/augmentation.h"

#include <ATen/Dispatch.h>

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

/// One image, pixels outermost (H x W x C).
template <class T>
void shift_image(const T* from, T* to, int64_t channels, int64_t height, int64_t width,
                 const CropAndFlip& draw) {
  for (int64_t y = 0; y < height; ++y) {
    const int64_t from_y = y + draw.dy;
    if (from_y < 0 || from_y >= height) continue;  // the output starts as zeros
    for (int64_t x = 0; x < width; ++x) {
      const int64_t from_x = (draw.flip ? width - 1 - x : x) + draw.dx;
      if (from_x < 0 || from_x >= width) continue;
      const T* pixel = from + (from_y * width + from_x) * channels;
      std::copy(pixel, pixel + channels, to + (y * width + x) * channels);
    }
  }
}

void check_positions(const at::Tensor& inputs, const std::vector<int64_t>& positions) {
  TORCH_CHECK(static_cast<int64_t>(positions.size()) == inputs.size(0), "one stream position an example");
}

}  // namespace

CropAndFlip draw_crop_and_flip(uint64_t stream_seed, int64_t position, int64_t padding) {
  const uint64_t first = 3 * static_cast<uint64_t>(position);
  return {shift_from(splitmix64(stream_seed, first), padding),
          shift_from(splitmix64(stream_seed, first + 1), padding),
          (splitmix64(stream_seed, first + 2) >> 63) != 0};
}

at::Tensor crop_and_flip(const at::Tensor& inputs, uint64_t master_seed,
                         const std::vector<int64_t>& positions, int64_t padding) {
  if (!inputs.device().is_cpu()) return crop_and_flip_by_gather(inputs, master_seed, positions, padding);
  check_positions(inputs, positions);
  const int64_t channels = inputs.size(1), height = inputs.size(2), width = inputs.size(3);
  const at::Tensor from = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor to = at::zeros_like(from);
  const uint64_t seed = derive_seed(master_seed, "augmentation");
  AT_DISPATCH_FLOATING_TYPES(inputs.scalar_type(), "crop_and_flip", [&] {
    const auto* source = from.const_data_ptr<scalar_t>();
    auto* target = to.mutable_data_ptr<scalar_t>();
    for (const int64_t position : positions) {
      shift_image(source, target, channels, height, width, draw_crop_and_flip(seed, position, padding));
      source += channels * height * width;
      target += channels * height * width;
    }
  });
  return to.contiguous(inputs.suggest_memory_format());
}

at::Tensor crop_and_flip_by_gather(const at::Tensor& inputs, uint64_t master_seed,
                                   const std::vector<int64_t>& positions, int64_t padding) {
  check_positions(inputs, positions);
  const int64_t n = inputs.size(0), height = inputs.size(2), width = inputs.size(3);
  const uint64_t seed = derive_seed(master_seed, "augmentation");
  // Source rows and columns in the padded image.
  at::Tensor rows = at::empty({n, height, 1}, at::kLong), columns = at::empty({n, 1, width}, at::kLong);
  auto *row = rows.mutable_data_ptr<int64_t>(), *column = columns.mutable_data_ptr<int64_t>();
  for (const int64_t position : positions) {
    const CropAndFlip draw = draw_crop_and_flip(seed, position, padding);
    for (int64_t y = 0; y < height; ++y) *row++ = y + draw.dy + padding;
    for (int64_t x = 0; x < width; ++x) *column++ = (draw.flip ? width - 1 - x : x) + draw.dx + padding;
  }
  const auto device = inputs.device();
  const at::Tensor examples = at::arange(n, at::TensorOptions(at::kLong).device(device)).view({n, 1, 1});
  const at::Tensor padded =
      at::constant_pad_nd(inputs, {padding, padding, padding, padding}).permute({0, 2, 3, 1});
  const at::Tensor gathered = at::index(padded.contiguous(), {examples, rows.to(device), columns.to(device)});
  return gathered.permute({0, 3, 1, 2}).contiguous(inputs.suggest_memory_format());
}

}  // namespace basin
