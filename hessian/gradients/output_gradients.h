// defines: for_each_output_gradient(), the gradients of a loss by the outputs of its layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/layers/layer_calls.h"

namespace basin {

/// One backward pass from `loss`, in which `take` is handed d loss / d y of each call y = layer(x) as soon as
/// it is known, last layers first, and may let go of the call's input: so only those
/// of the first layers are kept besides the graph. No call for a y that the loss doesn't depend on, and nothing
/// is computed for parameters. The graph is used up.
///
/// `take` runs on the engine's thread, the caller's own for the CPU and another for a device; what it throws
/// ends the pass and reaches the caller.
void for_each_output_gradient(const at::Tensor& loss, const std::vector<LayerCall>& calls,
                              const std::function<void(size_t call, const at::Tensor& gradient)>& take);

}  // namespace basin
