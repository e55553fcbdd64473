// defines: the probe margins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/probe.h"

namespace basin {

struct MarginsOptions {
  std::vector<int64_t> percentiles = {10, 50};
  std::vector<std::string> over = {"spectral", "path"};  // what the 10 % percentile is divided by
};
void bind_options(OptionTable& table, MarginsOptions& options);

/// How far the logits f are from another decision: margin_i = f_y - max_{c != y} f_c of each example (where each of its tokens has
/// a label, their mean; where labels are numbers there is none), its
/// mean and percentiles and the share below 0. Normalised, since logits grow with the weights: the 10 %
/// percentile, Jiang et al.'s gamma (ICLR 2020, arXiv 1912.02178, appendix C), over prod_i |W_i|_2 (Bartlett,
/// Foster & Telgarsky, NeurIPS 2017, without their sum) and over the path norm: the roots of
/// 1/"prod-of-spec/margin" and 1/"path-norm/margin".
///
/// In logits, normalised without units. The numbers are those of the N training examples: exact for n = N, else with
/// standard error and 95 % interval (probes/estimators/set_estimates.h, probes/estimators/percentile.h). No part is random.
///
/// Cost: one forward pass, and that of the norms (probes/estimators/layer_norms.h). What can go wrong: too few examples
/// for a percentile, a norm that doesn't exist (not_resolved); a margin below 0 stays below 0 when it is normalised.
/// Definitions: docs/probes.md#margins.
std::unique_ptr<Probe> make_margins(const MarginsOptions& options);

}  // namespace basin
