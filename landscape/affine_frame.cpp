#include "landscape/affine_frame.h"

#include <ATen/ATen.h>

#include <Eigen/QR>
#include <cmath>

#include "core/math/tensor_norms.h"

namespace basin {

AffineFrame::AffineFrame(at::Tensor origin, int64_t measured)
    : origin_(std::move(origin)), measured_(measured) {}

void AffineFrame::add(at::Tensor vector, bool is_point) {
  const at::Tensor step = is_point ? vector - origin_ : vector;
  axes_.push_back({vector, is_point, step.narrow(0, 0, measured_).to(at::kCPU).contiguous()});
}

void AffineFrame::add_point(at::Tensor state) { add(std::move(state), true); }

void AffineFrame::add_direction(at::Tensor direction) {
  const int64_t missing = origin_.numel() - direction.numel();
  add(at::constant_pad_nd(direction.to(origin_.device()), {0, missing}), false);
}

at::Tensor AffineFrame::at(const std::vector<double>& coordinates) const {
  TORCH_CHECK(coordinates.size() == axes_.size(), "one coordinate per axis");
  double of_origin = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].is_point) of_origin -= coordinates[i];
  }
  at::Tensor place;
  const auto add_term = [&](const at::Tensor& vector, double coefficient) {
    if (coefficient == 0) return;
    place = place.defined() ? place.add_(vector, coefficient) : vector * coefficient;
  };
  add_term(origin_, of_origin);
  for (size_t i = 0; i < axes_.size(); ++i) add_term(axes_[i].vector, coordinates[i]);
  return place.defined() ? place : at::zeros_like(origin_);
}

AffineFrame::Projection AffineFrame::project(const at::Tensor& state) const {
  const auto k = static_cast<Eigen::Index>(axes_.size());
  at::Tensor rest = (state - origin_).narrow(0, 0, measured_).to(at::kCPU).contiguous();
  Eigen::MatrixXd gram(k, k);
  Eigen::VectorXd right(k);
  for (Eigen::Index i = 0; i < k; ++i) {
    const at::Tensor& step = axes_[static_cast<size_t>(i)].step;
    right(i) = inner_product(step, rest);
    for (Eigen::Index j = 0; j < k; ++j) gram(i, j) = inner_product(step, axes_[static_cast<size_t>(j)].step);
  }
  const Eigen::VectorXd solution = gram.completeOrthogonalDecomposition().solve(right);
  for (Eigen::Index i = 0; i < k; ++i) rest.sub_(axes_[static_cast<size_t>(i)].step, solution(i));
  return {{solution.data(), solution.data() + k}, norm_of(rest)};
}

double AffineFrame::length(size_t axis) const { return norm_of(axes_.at(axis).step); }

double AffineFrame::cosine(size_t i, size_t j) const {
  return inner_product(axes_.at(i).step, axes_.at(j).step) / (length(i) * length(j));
}

std::vector<double> grid_values(double from, double to, int64_t points, const std::vector<double>& held) {
  std::vector<double> values;
  const auto last = static_cast<double>(std::max<int64_t>(points - 1, 1));
  for (int64_t i = 0; i < points; ++i) {
    const auto step = static_cast<double>(i);
    values.push_back((from * (last - step) + to * step) / last);  // exact at both ends and at 0 between them
  }
  const double close = 1e-9 * std::abs(to - from);
  for (const double value : held) {
    if (value < from - close || value > to + close) continue;
    const auto near =
        std::find_if(values.begin(), values.end(), [&](double v) { return std::abs(v - value) <= close; });
    if (near != values.end())
      *near = value;
    else
      values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace basin
