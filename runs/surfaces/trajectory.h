// defines: the kind "trajectory" of `basin landscape`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runs/surfaces/task.h"

namespace basin {

struct TrajectoryOptions {
  std::vector<std::string> at = {"all"};  // all | every | loss | labels
  std::string centre = "final";           // final | mean
  int64_t alpha_points = 25, beta_points = 25;
  double margin = 0.2;  // beyond the path, as a share of its extent
};
void bind_options(OptionTable& table, TrajectoryOptions& options);

/// The loss over the plane of a run's two principal directions about `centre` (landscape/trajectory_plane.h),
/// which is also the plane's origin. plots: "plane"; "path", each checkpoint's coordinates by least squares
/// and its distance from the plane; "components", the share of each principal direction. The loss drawn under
/// a checkpoint is that of its projection; `distance` says how far off it is.
std::unique_ptr<LandscapeTask> make_trajectory(LandscapeSubject& subject, const AnyOptions& options);

}  // namespace basin
