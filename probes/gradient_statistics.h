// defines: the probe gradient_statistics.
#pragma once

#include <memory>

#include "probes/gradient_findings.h"
#include "probes/probe.h"

namespace basin {

void bind_options(OptionTable& table, GradientStatisticsOptions& options);

/// What the gradients g_i of single examples say about noise, in eval mode. G is their mean, Sigma their covariance:
///   B = tr Sigma / |G|^2, the noise scale (McCandlish et al., arXiv 1812.06162, eq. 2.9);
///   n Delta = n sum_i |g_i|^2 / |sum_i g_i|^2 = 1 + B, the bound that gradient diversity Delta puts on batch
///   sizes (Yin et al., AISTATS 2018, arXiv 1706.05699);
///   coherence |G|^2 / mean |g_i|^2 = 1 / (1 + B) (Chatterjee & Zielinski, arXiv 2008.01217, their alpha);
///   GSNR, the mean over parameters of G_j^2 / Var g_ij (Liu et al., ICLR 2020, arXiv 2001.07384);
///   percentiles of |g_i|.
/// Each of the distribution that the n examples are taken for a draw from, and of the N training examples
/// that they were drawn from, with both as noise_scale.h defines them; n = N has no error. B, n Delta and
/// coherence take one estimate of |G|^2 and one of mean |g_i|^2, so the equalities hold exactly.
///
/// Standard errors: jackknife over examples (B and what follows from it, with Fieller's interval),
/// infinitesimal jackknife (GSNR), ranks (percentiles). No part of it is random.
///
/// Cost: two passes of hessian/gradients/per_example_gradients.h, which refuses networks whose layers it doesn't know.
/// Definitions and what can go wrong: docs/probes.md#gradient-statistics.
std::unique_ptr<Probe> make_gradient_statistics(const GradientStatisticsOptions& options);

}  // namespace basin
