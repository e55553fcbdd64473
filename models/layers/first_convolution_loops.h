// defines: FirstConvolutionLoops and its shape: a convolution of images, rectified and pooled, in one pass; which one this
// processor can take.
#pragma once

#include "models/layers/halving_loops.h"  // Place

namespace basin {

/// Images x[height][width][1 to 4], a kernel of 3x3 with a border of zeros, weights[3 x 3 x in][channels], outputs
/// y[height / 2][width / 2][channels]. Height and width are even.
struct FirstConvolutionShape {
  int64_t height, width, channels;
};

/// Loops over one image. `padded` is for them to write to: (height + 2)(width + 2) in numbers.
struct FirstConvolutionLoops {
  /// y = max(0, the largest of each square of w * x + b), and its places; NaN where one of the four is.
  void (*forward)(const FirstConvolutionShape&, const float* x, const float* weights, const float* bias,
                  float* y, Place* places, float* padded) = nullptr;
  /// Adds the gradients by weights and bias to what is there, h being that by y.
  void (*backward)(const FirstConvolutionShape&, const float* x, const float* h, const Place* places,
                   float* by_weights, float* by_bias, float* padded) = nullptr;
};

/// `in`: channels of the images, 1 to 4. Channels of the outputs are a multiple of 16, of 8.
FirstConvolutionLoops first_convolution_avx512(int64_t in);
FirstConvolutionLoops first_convolution_avx2(int64_t in);

}  // namespace basin
