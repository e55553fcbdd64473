// defines: AuditTrial and AuditVariant, which transformations an audit tries and on which settings of probes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "io/checkpoint.h"
#include "models/symmetries.h"
#include "optim/traits.h"
#include "runs/audit/verdict.h"

namespace basin {

/// One transformation of the network.
struct AuditTrial {
  std::string transformation;  // relu_rescale, relu_rescale_all, relu_rescale_units, norm_scale, ...
  double strength;             // its factor; NaN: has none
  Kept kind;
  Symmetry symmetry;
};

/// What this network allows of
///   relu_rescale        one layer in the middle by alpha = 2 and 10, the next by 1/alpha
///   relu_rescale_all    all layers, by 10 and 1/10 in turn
///   relu_rescale_units  each unit of every layer by its own factor in [1/10, 10], even in its logarithm
///   norm_scale          weights before every batch norm x 10
///   unit_permutation    the units of every layer in random order
///   logit_scale         logits x 2: kind decisions, the others are function
/// Chance comes from `seed`.
std::vector<AuditTrial> audit_trials(const Model& model, int64_t classes, uint64_t seed);

/// A probe with options, and what tells them from the usual ones ("": nothing).
struct AuditVariant {
  std::string probe, settings;
  std::unique_ptr<AnyOptions> options;
};

/// The probes with the settings that their entries make them cheap by (ProbeAudit), `sets` (PROBE.KEY=VALUE) on top; and once
/// more with each of their variants.
std::vector<AuditVariant> audit_variants(const std::vector<std::string>& probes,
                                         const std::vector<std::string>& sets);

/// As the checkpoint of the transformed network would have it, in float64: weights, statistics, and the
/// gradients, their squares and the weights that the optimiser keeps, as its traits tell them apart. Where its state doesn't belong
/// to single weights there is none to be had, and the checkpoint says, by a rate of NaN, that its optimiser isn't known.
Checkpoint transformed(const Checkpoint& checkpoint, const Symmetry& symmetry, const OptimizerTraits& traits);

/// Flat weights in the model's order, likewise.
at::Tensor transformed(const at::Tensor& weights, const Model& model, const Symmetry& symmetry);

}  // namespace basin
