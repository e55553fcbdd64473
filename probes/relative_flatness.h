// defines: the probe relative_flatness.
#pragma once

#include <memory>
#include <string>

#include "probes/probe.h"

namespace basin {

struct RelativeFlatnessOptions {
  std::string method = "closed_form";  // closed_form | hessian
  std::string layer;                   // a linear layer; empty: the last one
  int64_t samples = 16;                // hessian: sign vectors per example
};
void bind_options(OptionTable& table, RelativeFlatnessOptions& options);

/// Relative flatness of a linear layer y = W phi (Petzka et al., NeurIPS 2021, arXiv 2001.00939), w_s the
/// rows of W and H_{s,s'} the blocks of the Hessian of L by them, and its simple version:
///   kappa  = sum_{s,s'} <w_s, w_s'> Tr H_{s,s'}
///   simple = |W|_F^2 Tr H
/// Each example's y depends on its own phi_i alone, so with M_i = d2 l_i/dy2 and G = W W'
///   H      = 1/n sum_i M_i (x) phi_i phi_i',
///   kappa  = 1/n sum_i |phi_i|^2 tr(G M_i),   simple = |W|_F^2 1/n sum_i |phi_i|^2 tr M_i.
/// closed_form, for the last layer under cross entropy: M_i = c^2 (diag p_i - p_i p_i'), c a fixed factor on
/// the logits (1 as a rule), so tr(G M_i) = c^2 (sum_c G_cc p_ic - p_i' G p_i).
/// hessian, for any linear layer and loss: products M_i z of all examples at once, with z = each unit vector
/// where there are no more of them than `samples` (exact), else with `samples` sign vectors of each example's
/// own, E (G z)' M z = tr(G M).
///
/// In units of the loss. The layer's bias is no part of W. Error: over examples (none where they are the
/// training set) and over the signs. Cost: a forward pass; hessian: a gradient by the layer's outputs and
/// min(outputs, samples) products from there on, at most a Hessian-vector product each, where H itself would
/// take outputs x inputs of them. Memory: a micro-batch's graph. Refused: convolutions, a layer that is used
/// more than once, closed_form elsewhere. Definitions: docs/probes.md#relative-flatness.
std::unique_ptr<Probe> make_relative_flatness(const RelativeFlatnessOptions& options);

}  // namespace basin
