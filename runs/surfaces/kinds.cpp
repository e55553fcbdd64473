#include "runs/surfaces/kinds.h"

#include "runs/surfaces/barrier.h"
#include "runs/surfaces/curve.h"
#include "runs/surfaces/grids.h"
#include "runs/surfaces/radial.h"
#include "runs/surfaces/trajectory.h"

namespace basin {

const std::vector<LandscapeKind>& landscape_kinds() {
  static const std::vector<LandscapeKind> kinds = {
      {"line", "loss on the way from one checkpoint to another, or along random directions, with a band", 1,
       2, 1, make_options<LineOptions>, make_line},
      {"plane", "loss over two directions: random ones, or the ways to further checkpoints", 1, 3, 1,
       make_options<PlaneOptions>, make_plane},
      {"trajectory", "loss over the plane of a run's two principal directions, with its path", 1, 1, 1,
       make_options<TrajectoryOptions>, make_trajectory},
      {"barrier",
       "how high the loss rises on the straight line between two checkpoints, as they are and matched", 2, 2,
       1, make_options<BarrierOptions>, make_barrier},
      {"curve", "a curve of low loss trained between two checkpoints, and the straight line", 2, 2, 1,
       make_options<CurveOptions>, make_curve},
      {"radial", "how far from a checkpoint the loss has risen, along random directions", 1, 1, 1,
       make_options<RadialOptions>, make_radial},
  };
  return kinds;
}

}  // namespace basin
