// defines: flat_on_host() and take_from_flat(), tensors of a model as the one vector that processes exchange.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace basin {

/// One after another, each row-major whatever its strides; a copy.
at::Tensor flat_on_host(const std::vector<at::Tensor>& tensors);
/// Into the tensors, in place.
void take_from_flat(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

}  // namespace basin
