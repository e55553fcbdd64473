#include "data/augmentation.h"

#include <ATen/Dispatch.h>

#include "core/error.h"
#include "core/seed.h"

namespace basin {
namespace {

uint64_t splitmix64(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + (counter + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

bool coin(uint64_t seed, uint64_t counter) { return (splitmix64(seed, counter) >> 63) != 0; }

/// In [0, choices).
int64_t uniform(uint64_t seed, uint64_t counter, int64_t choices) {
  return static_cast<int64_t>(((splitmix64(seed, counter) >> 32) * static_cast<uint64_t>(choices)) >> 32);
}

}  // namespace

Augmentation::Augmentation(const DataOptions& options, uint64_t master_seed, const Split& train)
    : on_(options.augmentation != "none"),
      reflect_(options.padding_mode == "reflect"),
      flip_(options.flip == "none"     ? Flip::none
            : options.flip == "random" ? Flip::random
                                       : Flip::alternating),
      padding_(options.padding),
      cutout_(options.cutout),
      epoch_examples_(train.size()),
      channels_(train.has_pictures() ? train.inputs.size(1) : 0),
      height_(train.has_pictures() ? train.inputs.size(2) : 0),
      width_(train.has_pictures() ? train.inputs.size(3) : 0),
      shift_seed_(derive_seed(master_seed, "augmentation")),
      flip_seed_(derive_seed(master_seed, "flip")),
      cutout_seed_(derive_seed(master_seed, "cutout")) {}

AugmentationDraw Augmentation::draw(int64_t position, int64_t example) const {
  const uint64_t p = static_cast<uint64_t>(position);
  const int64_t shifts = 2 * padding_ + 1;
  return {uniform(shift_seed_, 3 * p, shifts) - padding_, uniform(shift_seed_, 3 * p + 1, shifts) - padding_,
          flips(position, example), uniform(cutout_seed_, 2 * p, height_ - cutout_ + 1),
          uniform(cutout_seed_, 2 * p + 1, width_ - cutout_ + 1)};
}

bool Augmentation::flips(int64_t position, int64_t example) const {
  if (flip_ == Flip::none) return false;
  if (flip_ == Flip::random) return coin(shift_seed_, 3 * static_cast<uint64_t>(position) + 2);
  const bool odd_epoch = position / epoch_examples_ % 2 != 0;
  return coin(flip_seed_, static_cast<uint64_t>(example)) != odd_epoch;
}

/// Where a row or column that may lie outside is taken from; -1: zeros.
int64_t Augmentation::source(int64_t index, int64_t size) const {
  if (index >= 0 && index < size) return index;
  if (!reflect_) return -1;
  return index < 0 ? -index : 2 * (size - 1) - index;
}

/// Pixels outermost (H x W x C); `to` starts as zeros.
template <class T>
void Augmentation::fill_image(const T* from, T* to, const AugmentationDraw& draw) const {
  for (int64_t y = 0; y < height_; ++y) {
    const int64_t from_y = source(y + draw.dy, height_);
    if (from_y < 0) continue;
    const bool cut_row = y >= draw.cut_y && y < draw.cut_y + cutout_;
    for (int64_t x = 0; x < width_; ++x) {
      if (cut_row && x >= draw.cut_x && x < draw.cut_x + cutout_) continue;
      const int64_t from_x = source((draw.flip ? width_ - 1 - x : x) + draw.dx, width_);
      if (from_x < 0) continue;
      const T* pixel = from + (from_y * width_ + from_x) * channels_;
      std::copy(pixel, pixel + channels_, to + (y * width_ + x) * channels_);
    }
  }
}

at::Tensor Augmentation::draws(const std::vector<int64_t>& positions,
                               const std::vector<int64_t>& examples) const {
  TORCH_CHECK(examples.size() == positions.size(), "one stream position and one index per example");
  const at::Tensor draws = at::empty({5, static_cast<int64_t>(positions.size())}, at::kLong);
  auto row = draws.accessor<int64_t, 2>();
  for (size_t i = 0; i < positions.size(); ++i) {
    const AugmentationDraw d = draw(positions[i], examples[i]);
    const auto column = static_cast<int64_t>(i);
    row[0][column] = d.dy, row[1][column] = d.dx, row[2][column] = d.flip;
    row[3][column] = d.cut_y, row[4][column] = d.cut_x;
  }
  return draws;
}

at::Tensor Augmentation::apply(const at::Tensor& inputs, const at::Tensor& draws) const {
  if (!inputs.device().is_cpu()) return apply_by_gather(inputs, draws);
  TORCH_CHECK(draws.size(1) == inputs.size(0), "one draw per example");
  const at::Tensor from = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor to = at::zeros_like(from);
  const auto row = draws.accessor<int64_t, 2>();
  AT_DISPATCH_FLOATING_TYPES(inputs.scalar_type(), "augmentation", [&] {
    const auto* source = from.const_data_ptr<scalar_t>();
    auto* target = to.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < inputs.size(0); ++i) {
      fill_image(source, target, {row[0][i], row[1][i], row[2][i] != 0, row[3][i], row[4][i]});
      source += channels_ * height_ * width_;
      target += channels_ * height_ * width_;
    }
  });
  return to.contiguous(inputs.suggest_memory_format());
}

/// source(); `size` where that is zeros.
at::Tensor Augmentation::sources(const at::Tensor& index, int64_t size) const {
  if (reflect_) return (index.abs() - (size - 1)).abs().neg() + (size - 1);
  return index.masked_fill(index.lt(0) | index.ge(size), size);
}

at::Tensor Augmentation::apply_by_gather(const at::Tensor& inputs, const at::Tensor& draws) const {
  const int64_t n = inputs.size(0);
  const at::TensorOptions indices = at::TensorOptions(at::kLong).device(inputs.device());
  const at::Tensor y = at::arange(height_, indices).view({1, height_, 1}), x = at::arange(width_, indices);
  const auto draw = [&](int64_t row) { return draws[row].view({n, 1, 1}); };
  const at::Tensor seen_x = x + draw(2) * (width_ - 1 - 2 * x);
  const at::Tensor rows = sources(y + draw(0), height_), columns = sources(seen_x + draw(1), width_);
  const at::Tensor which = at::arange(n, indices).view({n, 1, 1});
  // With a row and a column of zeros at the end.
  const at::Tensor framed = at::constant_pad_nd(inputs, {0, 1, 0, 1}).permute({0, 2, 3, 1}).contiguous();
  at::Tensor gathered = at::index(framed, {which, rows, columns});
  if (cutout_ > 0) {
    const auto within = [&](const at::Tensor& pixel, int64_t row) {
      return pixel.ge(draw(row)) & pixel.lt(draw(row) + cutout_);
    };
    gathered.masked_fill_((within(y, 3) & within(x, 4)).unsqueeze(3), 0);
  }
  return gathered.permute({0, 3, 1, 2}).contiguous(inputs.suggest_memory_format());
}

void check_augmentation(const DataOptions& options, const Split& train) {
  if (options.augmentation == "none") return;
  if (!train.has_pictures())
    throw ConfigError(fmt::format("data.augmentation = \"{}\" is for pictures; the inputs of {} are numbers",
                                  options.augmentation, options.set));
  const int64_t side = std::min(train.inputs.size(2), train.inputs.size(3));
  if (options.padding_mode == "reflect" && options.padding >= side) {
    throw ConfigError(fmt::format("data.padding = {} must be below the images' {} pixels to reflect them",
                                  options.padding, side));
  }
  if (options.cutout > side)
    throw ConfigError(
        fmt::format("data.cutout = {} is larger than the images' {} pixels", options.cutout, side));
}

}  // namespace basin
