// defines: Curve, a Bezier curve or a polygonal chain between two points of weight space.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

enum class CurveKind { bezier, chain };
CurveKind curve_kind(const std::string& name);  // ConfigError for anything but these

/// theta(t) = sum_k c_k(t) P_k, t in [0, 1], over P_0 (the start), n - 1 bends and P_n (the end) (Garipov et
/// al., NeurIPS 2018, arXiv 1802.10026, equations 3 and 4):
///   bezier  c_k = binom(n, k) (1 - t)^(n-k) t^k, quadratic with one bend
///   chain   straight from each point to the next, in equal shares of t
/// Points whose coefficient is 0 are left out, so the ends are the two networks bit for bit. The bends start
/// on the chord, evenly spaced, where either kind is the straight line. (DMC counts the ends: its "3 bends"
/// are one.)
///
/// Memory: n + 1 state vectors in float64.
class Curve {
 public:
  Curve(CurveKind kind, at::Tensor start, at::Tensor end, int64_t bends);

  at::Tensor at(double t) const;
  /// One for each point, the ends included.
  std::vector<double> coefficients(double t) const;
  int64_t bends() const { return static_cast<int64_t>(points_.size()) - 2; }
  /// Which = 0 .. bends - 1. The tensor itself: what is written into it moves the curve.
  const at::Tensor& bend(int64_t which) const { return points_[static_cast<size_t>(which) + 1]; }

 private:
  CurveKind kind_;
  std::vector<at::Tensor> points_;
};

}  // namespace basin
