// defines: random crop with padding and horizontal flip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace basin {

/// Example i is shifted by (dy, dx) in [-padding, padding]^2 over zero padding (after normalisation: the mean colour) and
/// flipped with probability 1/2, all drawn from derive_seed(master_seed, "augmentation", positions[i]): independent of
/// batch and micro-batch size. inputs [n, C, H, W] floats; returns a new tensor of the same layout.
at::Tensor crop_and_flip(const at::Tensor& inputs, uint64_t master_seed, const std::vector<int64_t>& positions,
                         int64_t padding);

}  // namespace basin
