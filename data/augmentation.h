// defines: random crop with padding and horizontal flip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace basin {

struct CropAndFlip {
  int64_t dy, dx;  // in [-padding, padding]
  bool flip;
};

/// The draw for one stream position: three outputs of SplitMix64 (Steele, Lea and Flood 2014) at counters 3p,
/// 3p+1, 3p+2 from derive_seed(master_seed, "augmentation"); dy and dx by multiply and shift of the upper 32
/// bits (uneven by 2^-32 at most).
CropAndFlip draw_crop_and_flip(uint64_t stream_seed, int64_t position, int64_t padding);

/// output[i, :, y, x] = input[i, :, y + dy, x' + dx] with x' = flip ? W-1-x : x, and 0 outside (after
/// normalisation: the mean colour). Drawn from positions[i] alone, hence independent of batch and micro-batch
/// size. inputs [n, C, H, W] floats on any device; returns a new tensor of the same layout. A loop over
/// memory on the CPU (a few microseconds an image), the gather below elsewhere.
at::Tensor crop_and_flip(const at::Tensor& inputs, uint64_t master_seed,
                         const std::vector<int64_t>& positions, int64_t padding);

/// The same by one indexing operation on the inputs' device; ten times slower on the CPU.
at::Tensor crop_and_flip_by_gather(const at::Tensor& inputs, uint64_t master_seed,
                                   const std::vector<int64_t>& positions, int64_t padding);

}  // namespace basin
