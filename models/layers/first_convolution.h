// defines: rectified_pooled_convolution().
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// rectified_max_pool(convolution(x, w, b, 1, 1)) over [n, C, H, W]. Where x is images (no gradient by them is recorded, up to four
/// channels, even sides), the kernel 3x3, everything float32 and the processor has AVX2 and fused multiplications, in one pass of
/// our own: the convolution's output, the largest tensor of a small network, is never written, and of its gradient, three quarters
/// zeros, nothing but what counts is. A fifth of such a network's training time (docs/benchmarks.md). Values and gradients are those
/// of the two functions but for rounding; derivatives of every order, from the second on at the two functions' price.
at::Tensor rectified_pooled_convolution(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);

}  // namespace basin
