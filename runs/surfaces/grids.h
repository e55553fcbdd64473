// defines: the kinds "line" and "plane" of `basin landscape`.
#pragma once

#include <memory>

#include "landscape/directions.h"
#include "runs/surfaces/task.h"

namespace basin {

struct LineOptions {
  int64_t points = 31;
  std::vector<double>
      alpha;                // [from, to]; empty: [-0.25, 1.25] between checkpoints, [-1, 1] along directions
  int64_t directions = 10;  // random ones, where there is one checkpoint
  DirectionOptions direction;
};
void bind_options(OptionTable& table, LineOptions& options);

/// L(w_1 + alpha (w_2 - w_1)) where there are two checkpoints; else L(w + alpha d_k) for independent random
/// directions k, and the band of them (landscape/direction_band.h).
std::unique_ptr<LandscapeTask> make_line(LandscapeSubject& subject, const AnyOptions& options);

struct PlaneOptions {
  int64_t alpha_points = 25, beta_points = 25;
  std::vector<double> alpha, beta;  // [from, to]; empty: [-0.25, 1.25] towards a checkpoint, else [-1, 1]
  DirectionOptions direction;
};
void bind_options(OptionTable& table, PlaneOptions& options);

/// L(w_1 + alpha d_1 + beta d_2): an axis leads to the second and to the third checkpoint, as far as there
/// are any, and along random directions else.
std::unique_ptr<LandscapeTask> make_plane(LandscapeSubject& subject, const AnyOptions& options);

/// Values of an axis and 0 (and `held`) among them. ConfigError naming `key` where `range` is neither empty
/// nor [from, to], from < to; empty: `usual`.
std::vector<double> axis_values(const std::string& key, const std::vector<double>& range,
                                const std::vector<double>& usual, int64_t points,
                                const std::vector<double>& held);

}  // namespace basin
