// defines: the passes over all parameters that an update on a CPU is made of.
#pragma once

#include <vector>

#include "optim/kernels/elementwise.h"
#include "optim/kernels/tensor_lists.h"

namespace basin {

using MomentumElements = std::vector<MomentumElement<double>>;  // one per tensor
using MomentElements = std::vector<MomentElement<double>>;
using SignElements = std::vector<SignElement<double>>;

/// Each pass reads and writes every tensor once and returns the sums of what it saw, one entry per tensor. An
/// element is computed in float64 (but for the root of the second moment and the division by it) and rounded
/// where it is stored. Tensors are cut into chunks of a fixed size, spread over threads, whose sums are added
/// in their order: nothing depends on the number of threads or on the width of registers. Loops are of arithmetic as much as of
/// memory, so each takes the sums alone that it is asked for; weights and state don't depend on it.
using PassSums = std::vector<TensorSums>;

/// Which sums the pass that changes the weights takes: none, that of the change, or those of weight and gradient too.
enum class Norms { none, change, all };

/// Writes nothing. Sums of weight and gradient, and of d as direction.
PassSums measure(const TensorLists& lists, const MomentumElements& elements);
/// v. Sums of weight and gradient, and of the new v as direction.
PassSums fill_buffer(const TensorLists& lists, const MomentumElements& elements);
/// v and w; without a buffer v is 0.
PassSums update_momentum(const TensorLists& lists, const MomentumElements& elements, Norms norms);

/// m and v. Sums of weight and gradient, and of u as direction.
PassSums advance_moments(const TensorLists& lists, const MomentElements& elements);
/// w, from the moments as they stand; sums of weight and gradient are advance_moments()'s to take.
PassSums apply_moments(const TensorLists& lists, const MomentElements& elements, Norms norms);
/// m, v and w at once, where no ratio has to be known before.
PassSums update_moments(const TensorLists& lists, const MomentElements& elements, Norms norms);

/// m, where there is one, and w.
PassSums update_signs(const TensorLists& lists, const SignElements& elements, Norms norms);

}  // namespace basin
