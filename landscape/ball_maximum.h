// defines: maximise_in_ball(), APGD over a ball or a cube.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace basin {

/// u, flat float64 on the function's device -> f(u); writes df/du (alike) to `gradient`.
using BallFunction = std::function<double(const at::Tensor& u, at::Tensor& gradient)>;

enum class BallNorm { l2, linf };

/// |u|_2 or max |u_i|; 0 for a vector of zeros.
double ball_norm(BallNorm norm, const at::Tensor& u);

struct BallSearch {
  BallNorm norm = BallNorm::l2;
  double radius = 1;
  int64_t iterations = 20;
  bool project = true;  // false: the search may leave the ball, for `compat` alone
};

struct BallMaximum {
  double value = 0;  // best f seen, at `point`
  at::Tensor point;
  double start_value = 0;
  int64_t evaluations = 0;     // of f with its gradient
  bool zero_gradient = false;  // at the start, from which nothing moved
  bool nonfinite = false;      // f or its gradient was NaN or infinite somewhere; the search ended there
};

/// The best point seen by auto-PGD on f over |u| <= radius from `start` (Croce and Hein, ICML 2020, algorithm
/// 1): z = P(u_k + s a(g_k)), u_{k+1} = P(u_k + 0.75 (z - u_k) + 0.25 (u_k - u_{k-1})), P the projection,
/// a(g) = g/|g|_2 or sign g, first step s = 2 radius. At shares 0.22, then max(gap - 0.03, 0.06) further
/// each, of the iterations s is halved and the search goes on from the best point where fewer than three
/// quarters of the steps since the last such look went up, or where neither s nor the best value changed
/// since then.
///
/// Every point is feasible (with project), so `value` is a lower bound of the maximum. Cost: iterations + 1
/// evaluations. What can go wrong: at a start without any gradient there is no way to go; local maxima.
BallMaximum maximise_in_ball(const BallFunction& f, const at::Tensor& start, const BallSearch& search);

/// After how many of `iterations` the step is looked at; rising.
std::vector<int64_t> apgd_checkpoints(int64_t iterations);

}  // namespace basin
