// defines: uses_of_leaves(), how often each parameter enters a graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

namespace basin {

/// For each leaf of the graph of `value`, by its TensorImpl: how many operations take it as an argument.
std::unordered_map<const c10::TensorImpl*, int64_t> uses_of_leaves(const at::Tensor& value);

}  // namespace basin
