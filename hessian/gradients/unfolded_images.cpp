#include "hessian/gradients/unfolded_images.h"

#include <ATen/ATen.h>

#include "hessian/gradients/pieces.h"

namespace basin {
namespace {

at::Tensor channels_at_the_end(const at::Tensor& images) { return images.detach().permute({0, 2, 3, 1}); }

}  // namespace

UnfoldedImages::UnfoldedImages(const LayerCall& convolution, const at::Tensor& delta)
    : images_(channels_at_the_end(convolution.x)),
      outputs_(channels_at_the_end(delta).contiguous()),
      rows_(convolution.weight.size(2)),
      columns_(convolution.weight.size(3)),
      stride_(convolution.stride) {
  const int64_t border = convolution.padding, height = images_.size(1) + 2 * border;
  const int64_t missing = (stride_ - height % stride_) % stride_;
  if (border + missing > 0)
    images_ = at::constant_pad_nd(images_, {0, 0, border, border, border, border + missing});
  images_ = images_.contiguous();
}

std::vector<at::Tensor> UnfoldedImages::patches(int64_t first, int64_t count) const {
  const int64_t pixel = images_.size(3), row = images_.size(2) * pixel, width = outputs_.size(2) * run();
  const int64_t heap = images_.size(1) / stride_ * width;
  const at::Tensor some = images_.narrow(0, first, count);
  const at::Tensor runs =
      some.as_strided({count, stride_, images_.size(1) / stride_, outputs_.size(2), run()},
                      {images_.size(1) * row, row, stride_ * row, stride_ * pixel, 1}, some.storage_offset())
          .contiguous();  // no copy where the kernel has one column: still in the middle of the images
  std::vector<at::Tensor> found;
  for (int64_t k = 0; k < rows_; ++k) {
    found.push_back(runs.as_strided({count, positions(), run()}, {stride_ * heap, run(), 1},
                                    runs.storage_offset() + k % stride_ * heap + k / stride_ * width));
  }
  return found;
}

void UnfoldedImages::for_each_piece(int64_t numbers,
                                    const std::function<void(int64_t first, const Piece&)>& take) const {
  const int64_t unfolded = images_.size(1) * outputs_.size(2) * run();
  basin::for_each_piece(images_.size(0), numbers + unfolded, [&](int64_t first, int64_t count) {
    const at::Tensor outputs = outputs_.narrow(0, first, count).view({count, positions(), channels()});
    take(first, {outputs, patches(first, count)});
  });
}

at::Tensor UnfoldedImages::by_row(const at::Tensor& weight) const {
  return weight.permute({2, 3, 1, 0}).flatten(1);
}

at::Tensor UnfoldedImages::as_weight(const at::Tensor& by_row) const {
  return by_row.view({rows_, columns_, images_.size(3), channels()}).permute({3, 2, 0, 1});
}

}  // namespace basin
