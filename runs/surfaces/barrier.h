// defines: the kind "barrier" of `basin landscape`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runs/surfaces/task.h"

namespace basin {

struct BarrierOptions {
  int64_t points = 25;
  std::vector<std::string> statistics = {"reset", "interpolate"};
  std::vector<std::string> matching = {"none", "weights"};
};
void bind_options(OptionTable& table, BarrierOptions& options);

/// Linear mode connectivity of two checkpoints: the straight line w_1 + t (w_2 - w_1), in each way of taking
/// it: with running statistics estimated anew at each point or interpolated like the weights, to the second
/// checkpoint as it is or with its units in the order nearest to the first's (landscape/unit_matching.h).
/// Paths are named <matching>-<statistics>; networks without batch statistics have none of "interpolate",
/// those without free units none of "weights". Heights, places and errors: plot "summary"
/// (runs/surfaces/path.h). landscape.bn is not looked at.
std::unique_ptr<LandscapeTask> make_barrier(LandscapeSubject& subject, const AnyOptions& options);

}  // namespace basin
