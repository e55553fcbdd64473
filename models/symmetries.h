// defines: Symmetry, a change of the weights that leaves the network's function or its decisions unchanged.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace basin {

/// x <- factor x + shift along an axis of one tensor, and then new unit i is old unit order[i].
struct TensorChange {
  UnitAxis axis;
  at::Tensor factor;      // float64 [units]; undefined: 1
  double shift = 0;       // of running variances
  at::Tensor order = {};  // int64 [units]; undefined: as they stand
};

/// What Dinh et al. (ICML 2017, arXiv 1703.04933) hold against measures of flatness: other weights, another
/// Hessian and the same function. Exact but for rounding, in eval mode with the running statistics that
/// change along; `changes` act one after the other.
struct Symmetry {
  std::vector<TensorChange> changes;
};

/// Each unit alpha_i > 0 times as large, and 1/alpha_i where it is taken (Dinh et al., section 5.1; equation
/// 1 for one alpha): outputs x alpha, biases too, inputs x 1/alpha. Behind a norm its weight and bias, for it
/// takes out the scale of what is before. For group.rescalable.
Symmetry relu_rescale(const Model& model, const UnitGroup& group, const at::Tensor& alpha);

/// Weight and bias before a batch norm x c > 0, its running mean x c, and variance v -> c^2 (v + eps) - eps,
/// so that eps takes nothing away (c^2 v as a new estimate would find it changes the output by up to eps/2v
/// of itself). For group.normalised.
Symmetry norm_scale(const Model& model, const UnitGroup& group, double c);

/// New unit i is old unit order[i], int64 [units].
Symmetry unit_permutation(const UnitGroup& group, const at::Tensor& order);

/// The logits x c > 0: weight and bias of the last layer. Decisions, and the order of the logits, stay; the
/// loss doesn't. Empty where the last layer isn't a linear one with a row for each class.
Symmetry logit_scale(const Model& model, int64_t classes, double c);

/// One after the other.
Symmetry joined(const std::vector<Symmetry>& symmetries);

/// In place, on tensors by their names in the model's tables, whatever their type; those that a list doesn't
/// have are left out. With `power` p the factors are to the power p, and shifts are left out: -1 for
/// gradients by the weights, -2 for their squares.
void apply_symmetry(const Symmetry& symmetry, const NamedTensors& tensors, int power = 1);

/// Parameters and buffers of a model under their names.
NamedTensors named_tensors(const Model& model);
/// Views of flat weights in the model's order, under the parameters' names and in their shapes.
NamedTensors named_views(const Model& model, const at::Tensor& flat);

}  // namespace basin
