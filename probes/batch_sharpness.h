// defines: the probe batch_sharpness.
#pragma once

#include <memory>

#include "probes/probe.h"

namespace basin {

struct BatchSharpnessOptions {
  int64_t batch_size = 0;  // examples per batch, no more than are measured; 0: the run's
  int64_t batches = 0;     // 0: as many as 8,192 examples make, between 16 and 256
};
void bind_options(OptionTable& table, BatchSharpnessOptions& options);

/// Batch sharpness E_B[g_B' H_B g_B / |g_B|^2] (Andreyev & Beneventano, arXiv 2412.20553, definition 3), in
/// loss per weight^2: the curvature of a batch's own loss along that batch's own gradient. B are batches of
/// `batch_size` of the n examples measured, drawn without replacement, each anew; g_B and H_B are gradient
/// and Hessian of the mean loss over B, in eval mode. For SGD this, and not lambda_1, settles near 2 /
/// learning rate, and so learning rate times it is given next to the method's stability limit.
///
/// Besides: the means of g'Hg and |g|^2, and the ratio of these means, which weighs batches by |g|^2.
/// Standard errors over batches with Student's t; of the ratio by the delta method with Fieller's interval. With n < N training
/// examples the variance of k batches of b is 1 + k b/(n - b) (1 - n/N) times as large, for the choice of the n: an upper bound.
/// One batch of all N examples has no error, one of n < N an unknown one (not resolved).
///
/// Cost: batches x batch_size / n gradients and as many Hessian-vector products from a graph of their own,
/// about 4 gradients together. Memory: the graph of one micro-batch. What can go wrong: the number depends on the batch size, and only that of the run's own is a gauge of
/// its stability; a run of larger batches than are measured has none, unless all training examples are.
/// Definitions: docs/probes.md#batch-sharpness.
std::unique_ptr<Probe> make_batch_sharpness(const BatchSharpnessOptions& options);

}  // namespace basin
