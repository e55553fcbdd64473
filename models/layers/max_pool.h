// defines: max_pool() and rectified_max_pool().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace basin {

/// The largest value of each window, by channel; derivatives of every order, the bits of at::max_pool2d. On a
/// CPU squares of 2x2 on images of even sides take loops of our own (models/layers/halving_loops.h), which keep one
/// place of 4 bytes per value instead of 8 and write each gradient once, where ATen fills with zeros before it
/// adds: a quarter of the training time of a small network.
at::Tensor max_pool(const at::Tensor& x, int64_t kernel, int64_t stride, int64_t padding = 0);

/// relu(max_pool(x, 2, 2)), in one pass on a CPU.
at::Tensor rectified_max_pool(const at::Tensor& x);

/// The values of [n, C, H, W] at `places` of a pooling (models/layers/halving_loops.h); 0 from nowhere.
at::Tensor at_places(const at::Tensor& large, const at::Tensor& places);

}  // namespace basin
