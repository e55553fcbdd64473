// defines: the probe sharpness_adaptive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/presets.h"
#include "probes/probe.h"

namespace basin {

struct SharpnessAdaptiveOptions : WithPreset {
  SharpnessAdaptiveOptions();
  std::vector<std::string> measures = {"worst_l2", "worst_linf", "average_l2", "average_linf"};
  std::vector<std::string> logits = {"plain", "normalised"};
  // One of each of the paper's grids.
  std::vector<double> worst_l2_rhos = {0.5}, worst_linf_rhos = {1e-3};
  std::vector<double> average_l2_rhos = {0.1}, average_linf_rhos = {0.2};
  std::string scale = "adaptive";   // c = |w| + eta, or standard: c = 1
  double eta = 1e-3;                // ours: the paper has none
  std::string zero_scale = "hold";  // a weight with c_i = 0 stays | unproject: what a tool does then
  int64_t group_size = 128;         // m; the paper's
  int64_t iterations = 20;          // the paper's
  int64_t restarts = 1;             // searches a group: from delta = 0, then from random points
  int64_t draws = 20;               // of the average
};
void bind_options(OptionTable& table, SharpnessAdaptiveOptions& options);

/// Adaptive sharpness (Andriushchenko et al., ICML 2023, arXiv 2302.07011), c = |w| + eta or 1, p = 2 or inf:
///   worst    mean over groups S of m examples of  max_{|delta/c|_p <= rho} L_S(w + delta) - L_S(w)
///   average  E_delta L(w + delta) - L(w),  delta_i ~ N(0, rho^2 c_i^2) (p = 2) or U(-rho c_i, rho c_i) (inf)
/// of the loss as it is and of that on normalised logits (landscape/normalised_logits.h).
///
/// In units of the loss. The maximum is searched by APGD (landscape/ball_maximum.h), so that the worst case
/// is a lower bound of the one defined. Cost: iterations + 1 gradients per start, worst rho and kind of
/// logits; a forward pass per draw, average rho and kind of logits. What can go wrong: radii aren't comparable between
/// norms, nor with other eta; eta = 0 alone leaves it invariant when layers are scaled against each other.
/// Definitions: docs/probes.md#adaptive-sharpness.
std::unique_ptr<Probe> make_sharpness_adaptive(const SharpnessAdaptiveOptions& options);

}  // namespace basin
