// defines: the probe dual_noise_scale.
#pragma once

#include <memory>

#include "probes/probe.h"

namespace basin {

struct DualNoiseScaleOptions {
  int64_t group_size = 10;  // examples per group; 100 groups of 1,000 examples
};
void bind_options(OptionTable& table, DualNoiseScaleOptions& options);

/// The gradient noise scale in the norms that sign and spectral descent go by (Naganuma et al. 2026, arXiv 2602.03001), in examples:
/// the batch size at which noise and signal of a gradient are equally strong in the dual norm,
///   B_sign     = ( sum_j sigma_j / |G|_1 )^2,  sigma_j the standard deviation of single gradients' entry j;
///   B_spectral = ( sum_l tr (E N_l N_l')^(1/2) / sum_l |G_l|_nuc )^2,  N_l the noise of matrix l of a single gradient.
/// Both are B of McCandlish et al. with |.|_2 replaced (probes/noise_scale.h). The smaller of N_l N_l' and N_l' N_l is taken, which
/// bounds E |N_l|_nuc more tightly. Parameters without a matrix are in B_sign alone.
///
/// Noise: from groups of b as noise_scale has them; the bias that a root of an estimate has is taken off by a jackknife over ten blocks
/// of groups, which gives the standard errors too. Signal: |Gbar|_* is on average too large, by the noise that is left in a mean of n;
/// mean_k hbar_k . d*(others), the mean of block k along the direction that the other blocks give, is on average too small. The
/// number takes the middle of the two, the 95 % interval reaches from the one with its error to the other with its. population and
/// finite set are as in noise_scale.h; where all N examples are measured |G|_* is exact, and for b = 1 so is everything.
///
/// Cost: one pass over the n examples in small batches, and SVDs of every matrix per block. Memory: 20 to 38 vectors in float64.
/// What can go wrong: with few examples the interval is wide, [low, inf) where the lower estimate of the signal is not above 0 (not_resolved).
/// Definitions: docs/probes.md#noise-scales-in-dual-norms.
std::unique_ptr<Probe> make_dual_noise_scale(const DualNoiseScaleOptions& options);

}  // namespace basin
