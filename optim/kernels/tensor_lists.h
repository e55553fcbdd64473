// defines: TensorLists, what an update reads and writes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace basin {

/// Entry i of each list belongs to parameter i, has its type, device and strides, and is dense in memory. Never a flattened
/// vector: layers' norms don't merge.
struct TensorLists {
  std::vector<at::Tensor> weights, gradients;
  std::vector<at::Tensor> first, second;  // momentum, or the two moments; empty where the method has none
  /// What second moments, trust ratios and clips are of in the place of `gradients`, and what of it stands for `first` in a ratio;
  /// mostly empty. On a CPU alone.
  std::vector<at::Tensor> clean_gradients = {}, clean_first = {};
};

}  // namespace basin
