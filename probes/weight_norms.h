// defines: the probe weight_norms.
#pragma once

#include <memory>

#include "probes/probe.h"

namespace basin {

struct WeightNormsOptions {
  bool by_layer = false;
  bool operator_norms = false;  // also those of convolutions as maps of their inputs
};
void bind_options(OptionTable& table, WeightNormsOptions& options);

/// Sizes of the weights w, at the start w0, and of the d layers' weight matrices W_i (of a convolution [out,
/// in k k]; a frozen batch norm after it folded in), as Jiang et al., ICLR 2020, arXiv 1912.02178, appendix
/// C, rank networks by:
///   |w|, |w|^2, |w - w0|                         all parameters as they are
///   |W_i|_F, |W_i|_2                             by layer, where asked for
///   prod_i |W_i|_F^2, d (prod)^(1/d)             "prod-of-fro", "sum-of-fro"
///   prod_i |W_i|_2^2, d (prod)^(1/d)             "prod-of-spec", "sum-of-spec"
///   sum_i |W_i|_F^2 / |W_i|_2^2                  "fro-over-spec"
///   sum_i |W_i - W_i0|_2^2                       "dist-spec-init"; not folded
///   path norm                                    probes/estimators/layer_norms.h
/// without their factor 1/m or margin (that: the probe margins).
///
/// Spectral norms carry a residual, the others are sums without an error beyond rounding. Cost: one forward
/// pass of an example, m^2 n for each m x n matrix, m <= n; no pass over the examples. What can go wrong: no
/// initial weights, no path norm (another activation than ReLU), a network that isn't made of convolutions
/// and linear layers: not_resolved with the reason. Definitions: docs/probes.md#weight-norms.
std::unique_ptr<Probe> make_weight_norms(const WeightNormsOptions& options);

}  // namespace basin
