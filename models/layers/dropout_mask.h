// defines: DropoutPlace and dropout_mask(), which elements a dropout layer keeps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace basin {

/// Where in a run a forward pass stands: its examples are those at positions first, first + 1, ... of the batch of an
/// update.
struct DropoutPlace {
  int64_t update = 0, first = 0;
};

/// Bytes [n, ...], 1 where kept, on the CPU: element e of the example at position i of update t is zeroed with probability
/// p (to 2^-32), where
///   word e mod 4 of philox({e / 4, i, t mod 2^32, t / 2^32}, key) < p 2^32,
/// e counted row by row whatever the memory format. A function of (key, t, i, e) alone: not of how a batch is cut into
/// forward passes, nor of their order, number, device or threads. i and e / 4 are below 2^32.
at::Tensor dropout_mask(at::IntArrayRef sizes, double p, uint64_t key, const DropoutPlace& place);

}  // namespace basin
