// defines: WhiteningConv2d, a convolution with frozen weights that whiten patches of images.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers.h"

namespace basin {

/// y = w * x + b with stride 1 and no padding, w frozen and b learned from 0. With p the kernel x kernel
/// patches of some images, flattened to d = channels kernel^2 numbers, S = mean p p^T = V diag(l) V^T and l
/// descending, the filters are
///
///   w_i = v_i / sqrt(l_i + eps),   w_{d+i} = -w_i,   i = 1 .. d,
///
/// so W S W^T of the first d is diag(l / (l + eps)): near the identity where l is above eps. Page 2019 ("How
/// to train your ResNet 8") with both signs, Jordan 2024 (arXiv 2404.00498). Moments about 0,
/// not about the mean, for images are normalised already. Until fit() the filters are those of white noise, S
/// = 1.
///
/// v's largest component is positive. Where eigenvalues agree v is LAPACK's choice, and another machine has
/// another network of the same kind. Cost of fit(): one pass over the patches in float64, in blocks
/// of images.
class WhiteningConv2d {
 public:
  WhiteningConv2d(const Builder& builder, const std::string& name, int64_t channels, int64_t kernel,
                  double eps);
  /// images [n, channels, H, W] on the CPU.
  void fit(const at::Tensor& images);
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t filters() const { return weight_.size(0); }

 private:
  void set_filters(const at::Tensor& eigenvalues, const at::Tensor& eigenvectors);

  double eps_;
  at::Tensor weight_, bias_;
};

}  // namespace basin
