// defines: network_inputs(), which turns pixels into network inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include "data/dataset.h"

namespace basin {

/// Examples `index` (int64 CPU) of a split as network inputs of the given type: (pixel/255 - mean)/std computed in double,
/// channels-last; of numbers (x - mean)/std, or as they are; integers stay integers. For pictures a loop on the CPU; where the split lies on a device, by
/// gathered_inputs() (data/resident.h).
at::Tensor network_inputs(const Dataset& data, const Split& split, const at::Tensor& index,
                          at::ScalarType dtype, at::Device device);

}  // namespace basin
