// defines: on_device(), a data set whose images lie where networks run, and gathered_inputs() from them.
#pragma once

#include <ATen/core/Tensor.h>

#include "data/dataset.h"

namespace basin {

/// The same data set with its images, labels and levels on `device`, whole: n C H W bytes of images and 8 n
/// of labels (60,000 CIFAR images: 184 MB and 0.5 MB), uploaded once. Images there are channels-last, numbers
/// normalised, in float64; on a CPU both are those of `data`, not copies. OutOfMemoryError of torch where
/// they don't fit.
Dataset on_device(const Dataset& data, at::Device device);

/// What on_device() does to numbers, once and for all: a batch on a device can't upload what they are normalised by. In float64;
/// nothing remains to be normalised by afterwards.
void normalise_numbers(Dataset& data);

/// network_inputs() by indexing operations on the device where `data`, from on_device(), lies: the same bits,
/// for what pictures become comes from the same table. `index` int64 on that device, not checked by the host: nothing
/// waits for the device, nothing is read from host memory, so a captured graph may hold it. Several times
/// slower than the loop on a CPU.
at::Tensor gathered_inputs(const Dataset& data, const Split& split, const at::Tensor& index,
                           at::ScalarType dtype);

}  // namespace basin
