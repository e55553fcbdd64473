#include "probes/noise_estimate.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace basin {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Everything the estimates need of the group gradients h_j: their squares and products with the two sums.
struct Moments {
  double n = 0, b = 0, m = 0;
  double mean_square = 0;          // |Gbar|^2
  double sum_mean = 0;             // M . Gbar with M = sum_j h_j
  std::vector<double> square;      // |h_j|^2
  std::vector<double> along_mean;  // h_j . Gbar
  std::vector<double> along_sum;   // h_j . M
  std::vector<double> deviation;   // |h_j - Gbar|^2
  double squares() const { return std::accumulate(square.begin(), square.end(), 0.0); }
};

at::Tensor in_double(const at::Tensor& gradient) { return gradient.detach().to(at::kDouble); }

double product_of(const at::Tensor& a, const at::Tensor& b) { return a.dot(b).item<double>(); }

Moments moments_of(const GradientGroups& gradients) {
  const int64_t groups = gradients.groups();
  at::Tensor sum = in_double(gradients.group(0)).clone();
  for (int64_t j = 1; j < groups; ++j) sum += in_double(gradients.group(j));
  at::Tensor mean = sum * static_cast<double>(gradients.group_size);
  if (gradients.left_over() > 0)
    mean += in_double(gradients.rest()) * static_cast<double>(gradients.left_over());
  mean /= static_cast<double>(gradients.examples);

  Moments moments{static_cast<double>(gradients.examples),
                  static_cast<double>(gradients.group_size),
                  static_cast<double>(groups),
                  product_of(mean, mean),
                  product_of(sum, mean),
                  {},
                  {},
                  {},
                  {}};
  for (int64_t j = 0; j < groups; ++j) {
    const at::Tensor h = in_double(gradients.group(j));
    const at::Tensor apart = h - mean;
    moments.square.push_back(product_of(h, h));
    moments.along_mean.push_back(product_of(h, mean));
    moments.along_sum.push_back(product_of(h, sum));
    moments.deviation.push_back(product_of(apart, apart));
  }
  return moments;
}

/// T and |G|^2 without group j.
struct Pair {
  double trace, g2;
};

Pair without_group(const Moments& s, size_t j, double squares) {
  const double left = s.n - s.b;
  const double mean_square =
      (s.n * s.n * s.mean_square - 2 * s.n * s.b * s.along_mean[j] + s.b * s.b * s.square[j]) / (left * left);
  const double sum_mean =
      (s.n * (s.sum_mean - s.along_mean[j]) - s.b * (s.along_sum[j] - s.square[j])) / left;
  const double deviations = squares - s.square[j] - 2 * sum_mean + (s.m - 1) * mean_square;
  const double trace = deviations / (s.m - 1) * s.b * left / (left - s.b);
  return {trace, mean_square - trace / left};
}

struct Covariance {
  double tt = 0, gg = 0, tg = 0;
};

Covariance jackknife(const Moments& s) {
  std::vector<Pair> without;
  Pair mean{0, 0};
  const double squares = s.squares();
  for (size_t j = 0; j < s.square.size(); ++j) {
    without.push_back(without_group(s, j, squares));
    mean.trace += without.back().trace / s.m;
    mean.g2 += without.back().g2 / s.m;
  }
  Covariance c;
  const double factor = (s.m - 1) / s.m;
  for (const Pair& pair : without) {
    const double t = pair.trace - mean.trace, g = pair.g2 - mean.g2;
    c.tt += factor * t * t;
    c.gg += factor * g * g;
    c.tg += factor * t * g;
  }
  return c;
}

Estimate symmetric(double value, double error, double t) {
  return {value, error, value - t * error, value + t * error};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void estimate_finite_set(const Moments& s, double trace, double t, NoiseEstimate& estimate) {
  const double mean = mean_of(s.deviation);
  double squares = 0;
  for (const double d : s.deviation) squares += (d - mean) * (d - mean);
  const double shrink = (s.n - 1) / s.n;
  // With groups of one the sum over the set is complete: nothing is estimated.
  const double error = s.b == 1 ? 0 : std::sqrt(squares / (s.m - 1) / s.m) * s.b * s.n / (s.n - s.b) * shrink;
  estimate.finite_tr_sigma = symmetric(trace * shrink, error, t);
  estimate.finite_g2 = symmetric(s.mean_square, 0, t);
  const double scale = s.mean_square > 0 ? 1 / s.mean_square : kNone;
  estimate.finite_b_simple = symmetric(trace * shrink * scale, error * scale, t);
}

}  // namespace

double student_quantile(double degrees_of_freedom) {
  const double z = 1.959963984540054, v = degrees_of_freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
         (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * v * v * v * v);
}

Estimate fieller_ratio(double a, double b, double vaa, double vbb, double vab, double t) {
  // All rho with (a - rho b)^2 <= t^2 (vaa - 2 rho vab + rho^2 vbb).
  const double infinity = std::numeric_limits<double>::infinity();
  const double square = b * b - t * t * vbb, linear = a * b - t * t * vab, constant = a * a - t * t * vaa;
  const double discriminant = linear * linear - square * constant;
  const double ratio = a / b;
  Estimate result{ratio, kNone, 0, infinity};
  if (square > 0 && b > 0) {  // b is resolved: the discriminant is then never negative
    const double root = std::sqrt(std::max(0.0, discriminant));
    result.error = std::sqrt(std::max(0.0, vaa - 2 * ratio * vab + ratio * ratio * vbb)) / std::abs(b);
    result.low = std::max(0.0, (linear - root) / square);
    result.high = (linear + root) / square;
  } else if (square < 0 && discriminant > 0) {
    // The set is the outside of two roots. Its part above the larger one is what a ratio >= 0 leaves, if that
    // is positive.
    const double larger = (linear - std::sqrt(discriminant)) / square;
    const double smaller = (linear + std::sqrt(discriminant)) / square;
    if (larger > 0 && smaller < 0) result.low = larger;
  }
  return result;
}

NoiseEstimate estimate_noise(const GradientGroups& gradients) {
  if (gradients.groups() < 4) throw ConfigError("the noise scale needs at least 4 groups of examples");
  const Moments moments = moments_of(gradients);
  NoiseEstimate estimate;
  estimate.finite = std::isfinite(moments.mean_square) && std::isfinite(moments.squares());
  const double trace = mean_of(moments.deviation) * moments.b * moments.n / (moments.n - moments.b);
  const double g2 = moments.mean_square - trace / moments.n;
  const double t = student_quantile(moments.m - 1);
  const Covariance covariance = jackknife(moments);
  estimate.tr_sigma = symmetric(trace, std::sqrt(covariance.tt), t);
  estimate.g2 = symmetric(g2, std::sqrt(covariance.gg), t);
  estimate.resolved = estimate.g2.low > 0;
  estimate.b_simple = fieller_ratio(trace, g2, covariance.tt, covariance.gg, covariance.tg, t);
  estimate_finite_set(moments, trace, t, estimate);
  return estimate;
}

}  // namespace basin
