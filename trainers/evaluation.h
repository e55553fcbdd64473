// defines: evaluate(), loss and accuracy of a split in eval mode; refresh_running_statistics().
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "io/record.h"
#include "models/loss.h"
#include "models/model.h"
#include "ranks/rank_group.h"

namespace basin {

/// Means over a split; NaN for an empty one, and where a logit is not finite. Accuracy is the mean of example_hits().
struct SplitScore {
  double loss = NAN, accuracy = NAN;
};

/// The views of an image whose logits are averaged (test-time augmentation as in Jordan 2024, arXiv 2404.00498):
/// "none", itself; "flip", it and its mirror image; "flip_shift", half these two and half the four views of
/// both shifted by a pixel up and left, and down and right, with reflected borders.
enum class Views { one, flip, flip_shift };
/// By the option test_time_augmentation; ConfigError where the images are too small to be shifted.
Views views_named(const std::string& name, const Split& split);

/// Forward passes per image that they cost besides the plain evaluation; 0 for "none".
int64_t passes_of_views(const std::string& name);

/// What a pass over a split needs to know of the run. The split lies where `data` does: on `device` (data/resident.h), or
/// on the host.
struct EvaluationSetup {
  const Dataset& data;
  LossKind loss = LossKind::cross_entropy;
  int64_t micro_batch = 0;
  at::ScalarType dtype = at::kFloat;
  at::Device device;
  Views views = Views::one;
  const RankGroup& ranks = RankGroup::alone();  // share the micro-batches; what comes out is the same on each
};

/// One forward pass per view, dropout off, normalisation by the running statistics. Losses are summed in float64.
/// Fills `outcomes` where given: loss by example, and where a label is one class margin, correctness and predicted class.
SplitScore evaluate(Model& model, const EvaluationSetup& setup, const Split& split,
                    ExampleOutcomes* outcomes = nullptr);

/// Puts the averages of ghost-batch statistics over the whole training split, in its own order, in place of the running
/// ones: after a few large-batch updates an exponential average still lags far behind. Does nothing without batch
/// statistics. One forward pass over the training split.
void refresh_running_statistics(Model& model, const EvaluationSetup& setup, int64_t ghost_batch);

}  // namespace basin
