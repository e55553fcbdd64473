#include "landscape/curve.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace basin {
namespace {

std::vector<double> bernstein(int64_t n, double t) {
  std::vector<double> coefficients;
  double binomial = 1;
  for (int64_t k = 0; k <= n; ++k) {
    // pow(0, 0) is 1: exact at both ends.
    coefficients.push_back(binomial * std::pow(1 - t, static_cast<double>(n - k)) *
                           std::pow(t, static_cast<double>(k)));
    binomial = binomial * static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return coefficients;
}

std::vector<double> hats(int64_t n, double t) {
  std::vector<double> coefficients(static_cast<size_t>(n) + 1, 0);
  const double place = t * static_cast<double>(n);
  const auto before = std::min(static_cast<size_t>(place), static_cast<size_t>(n) - 1);
  coefficients[before + 1] = place - static_cast<double>(before);
  coefficients[before] = 1 - coefficients[before + 1];
  return coefficients;
}

}  // namespace

CurveKind curve_kind(const std::string& name) {
  if (name == "bezier") return CurveKind::bezier;
  if (name == "chain") return CurveKind::chain;
  throw ConfigError(fmt::format("unknown curve \"{}\"; known: bezier, chain", name));
}

Curve::Curve(CurveKind kind, at::Tensor start, at::Tensor end, int64_t bends) : kind_(kind) {
  if (bends < 1) throw ConfigError(fmt::format("bends = {} violates bends >= 1", bends));
  points_.push_back(start.to(at::kDouble));
  for (int64_t k = 1; k <= bends; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(bends + 1);
    points_.push_back((1 - share) * points_.front() + share * end.to(at::kDouble));
  }
  points_.push_back(end.to(at::kDouble));
}

std::vector<double> Curve::coefficients(double t) const {
  return kind_ == CurveKind::bezier ? bernstein(bends() + 1, t) : hats(bends() + 1, t);
}

at::Tensor Curve::at(double t) const {
  const std::vector<double> weights = coefficients(t);
  at::Tensor sum = at::zeros_like(points_.front());
  for (size_t k = 0; k < points_.size(); ++k)
    if (weights[k] != 0) sum.add_(points_[k], weights[k]);
  return sum;
}

}  // namespace basin
