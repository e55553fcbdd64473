// defines: the probe noise_scale.
#pragma once

#include <memory>
#include <string>

#include "probes/probe.h"

namespace basin {

struct NoiseScaleOptions {
  std::string estimator = "paired";  // or per_example: groups of one
  int64_t group_size = 10;           // examples per group; 100 groups of 1,000 examples
};
void bind_options(OptionTable& table, NoiseScaleOptions& options);

/// The simple gradient noise scale B = tr Sigma / |G|^2 in eval mode (McCandlish et al., arXiv 1812.06162,
/// eq. 2.9): the batch size at which noise and signal of a gradient are equally strong.
///
/// n of the N training examples are split at random into groups of b; h_j is the mean gradient of group j,
/// and Gbar of all n. Then T = mean_j |h_j - Gbar|^2 b n / (n - b) is the paired estimate of tr Sigma (their
/// appendix A.1 with B_small = b, B_big = n), unbiased in its 1/(n-1) form, and
///   population: tr Sigma = T,  |G|^2 = |Gbar|^2 - T / n,  unbiased for the distribution that the n examples
///   are a fresh draw from. Where the parameters w were trained on the examples they are no fresh draw: with
///   N of them E|G|^2 = |G_N|^2 - S^2 / N, smaller than the distribution's. A held-out set is the estimator
///   that the words promise.
///   finite set: tr Sigma = T (N - 1) / N,  |G|^2 = |Gbar|^2 - T (1/n - 1/N),  unbiased for the N training
///   examples that batches are drawn from; for n = N, |G|^2 = |Gbar|^2 without error.
/// B is the ratio of the two, with a 95 % interval by Fieller's theorem on jackknife covariances over groups;
/// for the finite set they shrink by 1 - n/N, and n/N of the variance of the random grouping is added (b = 1:
/// none). Where the interval of |G|^2 holds 0 the ratio is not resolved; |G|^2 may come out negative and is
/// never clamped.
///
/// Cost: one pass over the n examples in small batches, and memory for the groups' gradients (a second pass
/// where they take more than 512 MiB). per_example: two passes of hessian/gradients/per_example_gradients.h, which
/// refuses networks whose layers it doesn't know. Definitions: docs/probes.md#gradient-noise-scale.
std::unique_ptr<Probe> make_noise_scale(const NoiseScaleOptions& options);

}  // namespace basin
