// defines: AffineFrame, a line, a plane or a higher flat in weight space with coordinates.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace basin {

/// w(a) = w_0 + sum_i a_i d_i, where d_i is a direction or the way to a further point, w_i - w_0. Computed as
/// (1 - sum of the points' a_i) w_0 + sum a_i w_i + sum a_j d_j without terms whose coefficient is 0: at the
/// origin and at each point it is that very vector, bit for bit.
///
/// Memory: one state vector (float64) an axis.
class AffineFrame {
 public:
  /// `measured`: lengths and projections are over this many first entries (the parameters of a state vector).
  AffineFrame(at::Tensor origin, int64_t measured);
  void add_point(at::Tensor state);
  void add_direction(at::Tensor direction);

  size_t dimension() const { return axes_.size(); }
  at::Tensor at(const std::vector<double>& coordinates) const;

  /// Least squares, min_a |w_0 + sum a_i d_i - w|: right also where the d_i are neither orthogonal nor of
  /// length 1. `distance`: of w from the flat.
  struct Projection {
    std::vector<double> coordinates;
    double distance = 0;
  };
  Projection project(const at::Tensor& state) const;
  /// |d_i|.
  double length(size_t axis) const;
  /// The cosine of the angle between two axes.
  double cosine(size_t i, size_t j) const;

 private:
  struct Axis {
    at::Tensor vector;  // the point, or the direction
    bool is_point;
    at::Tensor step;  // d_i, the first `measured_` entries
  };
  void add(at::Tensor vector, bool is_point);

  at::Tensor origin_;
  int64_t measured_;
  std::vector<Axis> axes_;
};

/// `points` values from `from` to `to`, evenly spaced, and among them 0 and 1 exactly where they lie on the
/// grid; each of `held` in the range that the spacing misses is put between them, so that what is known there
/// can be compared.
std::vector<double> grid_values(double from, double to, int64_t points, const std::vector<double>& held);

}  // namespace basin
