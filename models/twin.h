// defines: equal_norm_twin(), the same function at weights of standard lengths.
#pragma once

#include "models/model.h"

namespace basin {

/// The network's function at one representative of all weights that the rescalings of models/symmetries.h lead to,
/// one factor for a group of units: two networks that differ by such factors have the same twin. So what is measured
/// there (lambda_1, phi, batch sharpness, distances) does not depend on how long the weights of a layer happen to be.
///   Weights before a batch norm, whose length does nothing: |W|_F = sqrt(units) for each, biases along (norm_scale).
///   What makes the units of a rescalable group (relu_rescale), of length a, and takes them, of length b: both
///   sqrt(a b), the shortest weights of this function; but where all that takes them is before batch norms in turn, so
///   that b may be anything: a = sqrt(units).
/// By at most 200 sweeps over the groups, until no factor differs from 1 (residual networks without norms end 1e-6
/// away). Weights that no symmetry reaches stay: the last layer of a
/// network without rescalable groups, norms' own weights without a learned scale.
///
/// `tensors`: named_tensors() or other values under their names. Returns float64 copies; the same function to rounding,
/// in eval mode with the running statistics among them.
NamedTensors equal_norm_twin(const Model& model, const NamedTensors& tensors);

/// Puts it in the place of the model's parameters and buffers.
void become_equal_norm_twin(Model& model);

}  // namespace basin
