// defines: the kind "curve" of `basin landscape`.
#pragma once

#include <memory>
#include <string>

#include "landscape/curve_training.h"
#include "runs/surfaces/task.h"

namespace basin {

struct CurveOptions {
  std::string curve = "bezier";  // bezier | chain
  int64_t bends = 1;
  int64_t points = 61;
  CurveTrainingOptions training;
};
void bind_options(OptionTable& table, CurveOptions& options);

/// A Bezier curve or a polygonal chain of low loss between two checkpoints, trained
/// (landscape/curve_training.h) and then measured, as is the straight line. Trained on the examples of
/// landscape.subset, the ones measured on (0: the whole training split), without augmentation and dropout;
/// normalisation by each batch's own statistics, as in training. vectors: bend_1, bend_2, ..., state vectors;
/// attributes: epoch_losses, training_status ("finished", "diverged": the curve stands where it last was
/// finite). Highest point, mean along the path and barrier: plot "summary" (runs/surfaces/path.h).
///
/// Cost: epochs gradients of the examples; then 2 `points` points. Resumable: a state every few seconds,
/// between epochs.
std::unique_ptr<LandscapeTask> make_curve(LandscapeSubject& subject, const AnyOptions& options);

}  // namespace basin
