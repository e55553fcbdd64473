// defines: UnfoldedImages, a convolution as a few matrix products per image.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/layers/layer_calls.h"

namespace basin {

/// The inputs of a convolution as patches U_ik [P, Q] and the gradients by its outputs as D_i [P, O], with P
/// positions of the output, k a row of the kernel and Q = kernel width times channels. The gradient of image
/// i by that row of the weights is U_ik' D_i [Q, O].
///
/// Unfolded along the width alone: below each other lie the runs of Q numbers of an image's row, and the
/// patches of another row of the kernel are the same ones, one row further down. That copies an image as
/// many times as the kernel is wide, not as it has entries, which took as long as the products. With a stride
/// s the rows of the image are put in s heaps, each s-th on one, so that this holds.
class UnfoldedImages {
 public:
  struct Piece {
    at::Tensor outputs;               // [images, P, O]
    std::vector<at::Tensor> patches;  // [images, P, Q] for each row of the kernel
  };

  UnfoldedImages(const LayerCall& convolution, const at::Tensor& delta);

  int64_t positions() const { return outputs_.size(1) * outputs_.size(2); }  // P
  int64_t channels() const { return outputs_.size(3); }                      // O
  int64_t run() const { return columns_ * images_.size(3); }                 // Q
  int64_t rows() const { return rows_; }                                     // of the kernel
  /// One piece of images after the other (hessian/gradients/pieces.h); `numbers` is what the caller makes of an image
  /// besides its patches.
  void for_each_piece(int64_t numbers, const std::function<void(int64_t first, const Piece&)>& take) const;
  /// A weight [O, C, height, width] as [height, Q O], and back.
  at::Tensor by_row(const at::Tensor& weight) const;
  at::Tensor as_weight(const at::Tensor& by_row) const;

 private:
  std::vector<at::Tensor> patches(int64_t first, int64_t count) const;

  at::Tensor images_, outputs_;  // [n, H, W, C] with a border of zeros, H divisible by s; [n, H', W', O]
  int64_t rows_, columns_, stride_;
};

}  // namespace basin
