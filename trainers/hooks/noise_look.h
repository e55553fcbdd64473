// defines: NoiseLook and look_at_noise(), tr Sigma and |G|^2 from the micro-batches of one update.
#pragma once

#include <cmath>
#include <cstdint>

#include "data/example_stream.h"
#include "trainers/gradient_norm.h"

namespace basin {

/// NaN where the batch says nothing: fewer than two micro-batches, or all of the same examples.
struct NoiseLook {
  int64_t micro_batches = 0;
  double tr_sigma = NAN, g2 = NAN;
  bool available() const { return micro_batches > 0; }
};

/// The estimates of McCandlish et al. (arXiv 1812.06162, appendix A.1), for batches drawn from a training set
/// of N as the stream draws them and with micro-batches of any sizes. Example x comes up k_x times in the
/// batch of B and kappa_jx times in micro-batch j, which has K_j examples (repeated ones counted) and the
/// mean gradient h_j; g is the batch's.
///
/// Every epoch's order is a uniformly random one. So, at weights that don't depend on it and given how often
/// examples repeat, *which* they are is a uniform draw from the N without replacement, and with G the
/// gradient on the training set and S^2 = sum_x |g_x - G|^2 / (N - 1)
///   E|h_j|^2 = |G|^2 + S^2 (sum_x kappa_jx^2 / K_j^2 - 1/N),   E|g|^2 = |G|^2 + S^2 (sum_x k_x^2 / B^2 - 1/N).
/// That holds for batches within an epoch, across epochs and beyond N, with duplicates merged or not. Hence
///   T = (sum_j K_j |h_j|^2 - B |g|^2) / D,   D = sum_jx kappa_jx^2 / K_j - sum_x k_x^2 / B
/// is unbiased for S^2 (D = J - 1 for J micro-batches where nothing repeats), and so are
///   tr Sigma = T (N - 1)/N,   |G|^2 = |g|^2 - T (sum_x k_x^2 / B^2 - 1/N)
/// for the numbers of docs/probes.md#noise-scale-finite. |G|^2 may come out negative; nothing is clamped.
NoiseLook look_at_noise(const Batch& batch, int64_t micro_batch, const MicroBatchNorms& norms, int64_t n);

}  // namespace basin
