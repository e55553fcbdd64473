// defines: the passes over all parameters that an update on a CPU is made of.
#pragma once

#include <vector>

#include "optim/kernels/elementwise.h"
#include "optim/kernels/tensor_lists.h"

namespace basin {

using MomentumElements = std::vector<MomentumElement<double>>;  // one per tensor
using MomentElements = std::vector<MomentElement<double>>;

/// Each pass reads and writes every tensor once and returns the sums of what it saw, one entry per tensor. An
/// element is computed in float64 (but for the root of the second moment and the division by it) and rounded
/// where it is stored. Tensors are cut into chunks of a fixed size, spread over threads, whose sums are added
/// in their order: nothing depends on the number of threads or on the width of registers.
using PassSums = std::vector<TensorSums>;

/// Writes nothing. direction: of d.
PassSums measure(const TensorLists& lists, const MomentumElements& elements);
/// v. direction: of the new v.
PassSums fill_buffer(const TensorLists& lists, const MomentumElements& elements);
/// v and w; without a buffer v is 0.
PassSums update_momentum(const TensorLists& lists, const MomentumElements& elements);

/// m and v. direction: of u.
PassSums advance_moments(const TensorLists& lists, const MomentElements& elements);
/// w, from the moments as they stand.
PassSums apply_moments(const TensorLists& lists, const MomentElements& elements);
/// m, v and w at once, where no ratio has to be known before. direction: of u.
PassSums update_moments(const TensorLists& lists, const MomentElements& elements);

}  // namespace basin
