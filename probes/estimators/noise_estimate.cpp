#include "probes/estimators/noise_estimate.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/math/nan.h"
#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr int64_t kLags = 8;  // each group is multiplied with so many before it

/// Everything the estimates need of the group gradients h_j: their squares, and products with the two sums
/// and with some of each other.
struct Moments {
  double n = 0, b = 0, m = 0;
  double mean_square = 0;          // |Gbar|^2
  double sum_mean = 0;             // M . Gbar with M = sum_j h_j
  std::vector<double> square;      // |h_j|^2
  std::vector<double> along_mean;  // h_j . Gbar
  std::vector<double> along_sum;   // h_j . M
  std::vector<double> deviation;   // |h_j - Gbar|^2
  std::vector<double> across;      // (h_j - Gbar) . (h_k - Gbar) of up to kLags pairs per group
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
                  {},
                  {}};
  std::deque<at::Tensor> before;
  for (int64_t j = 0; j < groups; ++j) {
    const at::Tensor h = in_double(gradients.group(j));
    const at::Tensor apart = h - mean;
    moments.square.push_back(product_of(h, h));
    moments.along_mean.push_back(product_of(h, mean));
    moments.along_sum.push_back(product_of(h, sum));
    moments.deviation.push_back(product_of(apart, apart));
    for (const at::Tensor& other : before) moments.across.push_back(product_of(apart, other));
    if (moments.b == 1) continue;  // then nothing depends on the grouping
    before.push_front(apart);
    if (static_cast<int64_t>(before.size()) > kLags) before.pop_back();
  }
  return moments;
}

Moments moments_of(const ExampleProducts& gradients) {
  Moments moments;
  moments.n = moments.m = static_cast<double>(gradients.square.size());
  moments.b = 1;
  moments.mean_square = gradients.mean_square;
  moments.sum_mean = moments.n * gradients.mean_square;
  moments.square = gradients.square;
  moments.along_mean = gradients.along_mean;
  for (size_t i = 0; i < gradients.square.size(); ++i) {
    const double along = gradients.along_mean[i];
    moments.along_sum.push_back(moments.n * along);
    moments.deviation.push_back(gradients.square[i] - 2 * along + gradients.mean_square);
  }
  return moments;
}

/// The unbiased trace T, and |G|^2 of the distribution and of the set.
struct Numbers {
  double trace, g2, set_g2;
};

/// E|Gbar|^2 is |G|^2 + tr Sigma / n for draws from a distribution, and |G|^2 + S^2 (1/n - 1/N) for n of N
/// without replacement, where S^2 is what T is unbiased for.
Numbers numbers_of(double mean_square, double trace, double n, double set) {
  return {trace, mean_square - trace / n, mean_square - trace * (1 / n - 1 / set)};
}

/// Adds |Gbar|^2 and T without group j.
void leave_out(const Moments& s, size_t j, double squares, LeftOut& numbers) {
  const double left = s.n - s.b;
  const double mean_square =
      (s.n * s.n * s.mean_square - 2 * s.n * s.b * s.along_mean[j] + s.b * s.b * s.square[j]) / (left * left);
  const double sum_mean =
      (s.n * (s.sum_mean - s.along_mean[j]) - s.b * (s.along_sum[j] - s.square[j])) / left;
  const double deviations = squares - s.square[j] - 2 * sum_mean + (s.m - 1) * mean_square;
  numbers.traces.push_back(deviations / (s.m - 1) * s.b * left / (left - s.b));
  numbers.mean_squares.push_back(mean_square);
}

LeftOut left_out(const Moments& s) {
  LeftOut numbers{s.n, s.b, mean_of(s.deviation).value * s.b * s.n / (s.n - s.b), s.mean_square, {}, {}};
  const double squares = s.squares();
  for (size_t j = 0; j < s.square.size(); ++j) leave_out(s, j, squares, numbers);
  numbers.grouping_variance = grouping_variance(s.n, s.b, s.m, numbers.trace, s.across);
  return numbers;
}

struct Covariance {
  double tt = 0, gg = 0, tg = 0;
  void add(double t, double g, double weight) {
    tt += weight * t * t;
    gg += weight * g * g;
    tg += weight * t * g;
  }
};

struct Covariances {
  Covariance population, set;
};

/// Over groups, as if they were drawn from a distribution.
Covariances jackknife(const LeftOut& s, double set) {
  std::vector<Numbers> without;
  Numbers mean{0, 0, 0};
  const auto m = static_cast<double>(s.traces.size());
  for (size_t j = 0; j < s.traces.size(); ++j) {
    without.push_back(numbers_of(s.mean_squares[j], s.traces[j], s.n - s.b, set));
    mean.trace += without.back().trace / m;
    mean.g2 += without.back().g2 / m;
    mean.set_g2 += without.back().set_g2 / m;
  }
  Covariances c;
  const double factor = (m - 1) / m;
  for (const Numbers& one : without) {
    const double t = one.trace - mean.trace;
    c.population.add(t, one.g2 - mean.g2, factor);
    c.set.add(t, one.set_g2 - mean.set_g2, factor);
  }
  return c;
}

Estimate symmetric(double value, double error, double t) {
  return {value, error, value - t * error, value + t * error};
}

NoiseNumbers with_intervals(double trace, double g2, const Covariance& c, double t, bool definite) {
  NoiseNumbers numbers;
  numbers.tr_sigma = symmetric(trace, std::sqrt(c.tt), t);
  numbers.g2 = symmetric(g2, std::sqrt(c.gg), t);
  numbers.resolved = numbers.g2.low > 0;
  numbers.b_simple = (definite ? fieller_ratio : signed_ratio)(trace, g2, c.tt, c.gg, c.tg, t);
  return numbers;
}

/// The covariance for the set: what the draw of n from N leaves open shrinks by 1 - n/N; what the grouping does stays.
Covariance of_set(const Covariance& jackknifed, double grouping, double share, double trace_factor) {
  const double open = 1 - share;
  Covariance c;
  c.tt = trace_factor * trace_factor * (open * jackknifed.tt + share * grouping);
  c.gg = open * jackknifed.gg;
  c.tg = trace_factor * open * jackknifed.tg;
  return c;
}

}  // namespace

void check_noise_sizes(int64_t groups, int64_t examples, int64_t set_examples) {
  if (groups < 4) throw ConfigError("the noise scale needs at least 4 groups of examples");
  if (set_examples < examples) {
    throw ConfigError(fmt::format("the noise scale of a set of {} examples cannot be estimated from {}",
                                  set_examples, examples));
  }
}

/// Sum_j |sum_(i in j) c_i|^2 = sum_i |c_i|^2 + the products within groups; the first sum does not depend
/// on the grouping, and each of the m b (b - 1) / 2 products has the variance tau = tr Sigma^2, which the
/// products across groups show: (h_j - Gbar) . (h_k - Gbar) has mean -T / n and variance tau / b^2. Which
/// examples fill no group is taken to make no difference: with few of them and no heavy tails.
double grouping_variance(double n, double b, double m, double trace, const std::vector<double>& across) {
  if (across.empty()) return 0;
  double sum = 0;
  for (const double product : across) sum += (product + trace / n) * (product + trace / n);
  const double mean = sum / static_cast<double>(across.size()), grow = n / (n - b);
  return grow * grow * 2 * b * (b - 1) * mean / m;
}

NoiseEstimate estimate_noise(const LeftOut& s, int64_t set_examples) {
  check_noise_sizes(static_cast<int64_t>(s.traces.size()), static_cast<int64_t>(s.n), set_examples);
  const auto set = static_cast<double>(set_examples);
  const double shrink = (set - 1) / set;
  const Numbers numbers = numbers_of(s.mean_square, s.trace, s.n, set);
  const double t = student_quantile(static_cast<double>(s.traces.size()) - 1);
  const Covariances covariances = jackknife(s, set);
  NoiseEstimate estimate;
  estimate.all_finite = std::isfinite(s.mean_square) && std::isfinite(s.trace);
  estimate.population = with_intervals(s.trace, numbers.g2, covariances.population, t, s.definite);
  estimate.finite =
      with_intervals(s.trace * shrink, numbers.set_g2,
                     of_set(covariances.set, s.grouping_variance, s.n / set, shrink), t, s.definite);
  return estimate;
}

NoiseEstimate estimate_noise(const GradientGroups& gradients, int64_t set_examples) {
  check_noise_sizes(gradients.groups(), gradients.examples, set_examples);
  return estimate_noise(left_out(moments_of(gradients)), set_examples);
}

NoiseEstimate estimate_noise(const ExampleProducts& gradients, int64_t set_examples) {
  const auto n = static_cast<int64_t>(gradients.square.size());
  check_noise_sizes(n, n, set_examples);
  return estimate_noise(left_out(moments_of(gradients)), set_examples);
}

Estimate no_estimate() { return {kNaN, kNaN, kNaN, kNaN}; }

NoiseEstimate no_noise_estimate() {
  const NoiseNumbers none{no_estimate(), no_estimate(), no_estimate(), false};
  return {none, none, true};
}

std::vector<double> to_doubles(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.to(at::kCPU, at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

ExampleProducts example_products(const at::Tensor& squared_norms, const at::Tensor& along_mean,
                                 double mean_square) {
  return {to_doubles(squared_norms), to_doubles(along_mean), mean_square};
}

}  // namespace basin
