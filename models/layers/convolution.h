// defines: convolution(), a convolution whose second derivative costs what its first one does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace basin {

/// y = x * w + b over [n, C, H, W] (at::conv2d; b may be undefined), with a second derivative of its own, for
/// products with curvature matrices. A gradient h by y gives h *' w by x and x (*) h by w. The derivatives of
/// u . (h *' w) + v . (x (*) h) + c . sum h, which is what a product along (u, v, c) asks for, are
///     by h:  u * w + x * v + c        by x:  h *' v        by w:  u (*) h,
/// four convolutions of the three kinds that a gradient takes. ATen's formula takes the last two as forward
/// convolutions of transposed copies with the images as kernels, which costs several times as much
/// (docs/benchmarks.md). First derivatives are ATen's, bit for bit; third ones work, at ATen's price.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, int64_t stride,
                       int64_t padding);

}  // namespace basin
