// defines: TrajectoryPlane, the principal directions of a run's path through weight space.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "landscape/affine_frame.h"

namespace basin {

/// Principal components of the path w_1 ... w_k about a centre c (Li et al., NeurIPS 2018, section 7.2): with
/// G_ij = <w_i - c, w_j - c> = U diag(s) U' in float64, direction m is sum_i U_im (w_i - c) / sqrt(s_m), of
/// length 1, and the directions are orthogonal. Only the parameters count; running statistics and other
/// buffers go along with the same coefficients. The sign makes the first checkpoint's coordinate positive.
///
/// `share`: s_m / sum s. About the mean of the path that is the explained variance; about its last point the
/// explained sum of squared distances from there. High shares say little: a random walk in many dimensions
/// has 6 / (pi m)^2 in component m about its mean, 61 and 15 % (Antognini and Sohl-Dickstein, NeurIPS 2018).
///
/// Cost: k (k + 1) / 2 inner products and k sums over the weights. Memory: one float64 state per checkpoint.
struct TrajectoryPlane {
  AffineFrame frame;
  std::vector<double> share;                  // of every component, falling
  std::vector<AffineFrame::Projection> path;  // of each checkpoint, by least squares
};

/// `measured`: entries of a state that are parameters. ConfigError where the path spans no `dimension`
/// directions: too few checkpoints, or all on a line.
TrajectoryPlane trajectory_plane(const std::vector<at::Tensor>& states, const at::Tensor& centre,
                                 int64_t measured, size_t dimension);

/// The mean of states.
at::Tensor mean_state(const std::vector<at::Tensor>& states);

}  // namespace basin
