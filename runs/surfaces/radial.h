// defines: the kind "radial" of `basin landscape`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "landscape/directions.h"
#include "runs/surfaces/task.h"

namespace basin {

struct RadialOptions {
  int64_t directions = 20;
  std::vector<double> deltas = {0.01, 0.1, 1};
  double most = 10;
  double tolerance = 0.01;
  DirectionOptions direction{"unit", "none"};
};
void bind_options(OptionTable& table, RadialOptions& options);

/// How far from a checkpoint along random directions d the training loss has risen by delta: r(d) with L(w +
/// r d) = L(w) + delta, over {direction, delta}; and over {delta} what it says of the region's volume
/// (landscape/radial_profile.h; mean_log_power and effective_directions for direction.norm = "unit" alone,
/// whose directions are uniform on the sphere). r counts in |d|: with "unit" it is the distance, with
/// "filter" 1 is a direction in which each filter moves by its own length, which rescaled layers don't
/// change. A direction that hasn't risen within most |w| / |d| has the radius NaN and reached = 0.
///
/// Cost: about 10 losses of the training examples per direction and delta, and with landscape.bn = "reset" as
/// many estimates of the statistics where there are any.
std::unique_ptr<LandscapeTask> make_radial(LandscapeSubject& subject, const AnyOptions& options);

}  // namespace basin
