// defines: the probe fisher_rao.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/probe.h"

namespace basin {

struct FisherRaoOptions {
  std::vector<std::string> forms = {"empirical", "model"};  // and closed_form
};
void bind_options(OptionTable& table, FisherRaoOptions& options);

/// The Fisher-Rao norm of the weights (Liang, Poggio, Rakhlin & Stokes, AISTATS 2019, arXiv 1711.01530),
/// squared: w'Fw = E <w, g>^2 with the gradients g of single losses,
///   empirical    at the examples' own labels: 1/n sum_i <w, g_i>^2
///   model        at labels drawn from the network's own distribution, summed over exactly:
///                1/n sum_i d_i' A_i d_i, d_i = J_i w the logits' slope along w, A_i = d2 l_i/df2 (for cross
///                entropy the variance of d_ic over c ~ softmax). Where each of T tokens has a label they are drawn
///                independently: 1/T of that form
///   closed_form  (L+1)^2 E <dl/df, f>^2 (their theorem): the empirical one of a ReLU network of L hidden
///                layers without biases, where J w = (L+1) f (Euler: f has degree L+1 in w)
///
/// In squared units of the loss. All parameters count, as they are. <w, g_i> = <dl_i/df, J_i w>, so one
/// product J w serves all forms, and says whether the closed form holds: L+1 is the degree nearest to
/// <Jw, f>/<f, f>, and the distance of J w from (L+1) f is recorded (`degree`, `degree_deviation`); where it
/// is above 1e-4 the closed form is not_resolved. Standard errors over examples (probes/estimators/set_estimates.h),
/// none where they are the training set. No part of it is random.
///
/// Cost: one product J w, of the price of a Hessian-vector product; memory: that of hessian/jacobian.h for a
/// micro-batch. What can go wrong: biases, residual sums of paths of unlike length, norms: no closed form.
/// Definitions: docs/probes.md#fisher-rao-norm.
std::unique_ptr<Probe> make_fisher_rao(const FisherRaoOptions& options);

}  // namespace basin
