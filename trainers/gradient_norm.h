// defines: gradient_square() and put_gradient_square(), |g|^2 of a gradient on any device; MicroBatchNorms.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace basin {

/// Squared norms of the gradient of one batch, in (loss/weight)^2.
struct MicroBatchNorms {
  double mean = 0;            // |g|^2, g the batch's mean gradient
  std::vector<double> parts;  // |K_j h_j / B|^2: of what micro-batch j adds to g
};

/// target <- sum_j g_j^2 over all tensors in float64; `target` is a float64 number on their device, which
/// nobody waits for.
void put_gradient_square(const std::vector<at::Tensor>& gradient, at::Tensor target);
/// The same; waits for the device once.
double gradient_square(const std::vector<at::Tensor>& gradient);

}  // namespace basin
