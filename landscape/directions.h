// defines: random_direction() and its normalisation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/options.h"
#include "hessian/parameter_vector.h"

namespace basin {

struct DirectionOptions {
  std::string norm = "filter";    // filter | layer | unit | none
  std::string ignore = "biasbn";  // biasbn | none
};
void bind_options(OptionTable& table, DirectionOptions& options);

/// Flat d, float64 on the host, in the order of `vector`: entries N(0, 1), drawn in float64 whatever the
/// network's type, then by `norm`
///   filter  d_f <- d_f |w_f| / (|d_f| + 1e-10) for every output filter or neuron f, slice f of a tensor along
///           its first axis (Li et al., NeurIPS 2018, section 4); each entry of a 1-D tensor is one of its own
///   layer   the same for whole tensors
///   unit    d <- d / |d|
///   none    as drawn, |d| = sqrt(n) or so
/// ignore = "biasbn": biases and the parameters of normalisation layers don't move, d = 0 there. All norms
/// are Euclidean, of the weights w that the direction starts from.
///
/// What can go wrong: a filter of zeros doesn't move. Two directions are nearly, never exactly orthogonal;
/// with one seed they are the same for every network of the same shape, but for the norms.
at::Tensor random_direction(const ParameterVector& vector, const at::Tensor& weights,
                            const DirectionOptions& options, uint64_t seed);

/// The second half of it: what is to be ignored set to zero and d scaled. `weights` and d: flat.
at::Tensor normalised_direction(const ParameterVector& vector, const at::Tensor& weights, at::Tensor d,
                                const DirectionOptions& options);

}  // namespace basin
