// defines: evaluate(), loss and accuracy of a split in eval mode; refresh_running_statistics().
#pragma once

#include <cmath>
#include <cstdint>

#include "data/dataset.h"
#include "io/record.h"
#include "models/loss.h"
#include "models/model.h"

namespace basin {

/// Means over a split; NaN for an empty one, and where a logit is not finite.
struct SplitScore {
  double loss = NAN, accuracy = NAN;
};

/// What a pass over a split needs to know of the run.
struct EvaluationSetup {
  const Dataset& data;
  LossKind loss;
  int64_t micro_batch;
  at::ScalarType dtype;
  at::Device device;
};

/// One forward pass, dropout off, normalisation by the running statistics. Losses are summed in float64. Fills `outcomes`
/// where given: loss, margin and correctness by example.
SplitScore evaluate(Model& model, const EvaluationSetup& setup, const Split& split, ExampleOutcomes* outcomes = nullptr);

/// Puts the averages of ghost-batch statistics over the whole training split, in its own order, in place of the running
/// ones: after a few large-batch updates an exponential average still lags far behind. Does nothing without batch
/// statistics. One forward pass over the training split.
void refresh_running_statistics(Model& model, const EvaluationSetup& setup, int64_t ghost_batch);

}  // namespace basin
