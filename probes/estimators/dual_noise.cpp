#include "probes/estimators/dual_noise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/math/as_matrix.h"
#include "core/math/nan.h"
#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr double kRoundingOfSums = 1e-14;
// Every pair of blocks is in the mean of products twice. Where noise dominates, that makes its variance up to three times that of as
// many independent products (twice if they were bilinear); where the signal does, the factor is too large.
constexpr double kSharedBlocks = 3;
constexpr int64_t kBlocks = 10;  // that the jackknife leaves out, one after another

/// [r, r] with r the shorter side.
at::Tensor square_of(const at::Tensor& parameter) {
  const at::Tensor m = as_matrix(parameter);
  return m.size(0) <= m.size(1) ? at::mm(m, m.t()) : at::mm(m.t(), m);
}

/// GroupSums over the mean gradients h_j of some groups, in float64.
struct GroupSums {
  double groups = 0;
  at::Tensor gradients;              // sum_j h_j
  at::Tensor squares;                // sum_j h_j^2, entry by entry
  std::vector<at::Tensor> products;  // sum_j H_j H_j' of each matrix; undefined for other parameters

  void add(const at::Tensor& h, const ParameterVector& vector) {
    std::vector<at::Tensor> of_matrices;
    for (const at::Tensor& part : vector.unflatten(h))
      of_matrices.push_back(has_matrix(part) ? square_of(part) : at::Tensor());
    add({1, h, h.square(), std::move(of_matrices)});
  }
  void add(const GroupSums& other, double factor = 1) {
    if (!gradients.defined()) {
      gradients = at::zeros_like(other.gradients);
      squares = at::zeros_like(other.squares);
      for (const at::Tensor& p : other.products) products.push_back(p.defined() ? at::zeros_like(p) : p);
    }
    groups += factor * other.groups;
    gradients.add_(other.gradients, factor);
    squares.add_(other.squares, factor);
    for (size_t i = 0; i < products.size(); ++i)
      if (products[i].defined()) products[i].add_(other.products[i], factor);
  }
};

/// What is left out of `whole`.
GroupSums left_without(const GroupSums& whole, const GroupSums& part) {
  GroupSums left;
  left.add(whole);
  left.add(part, -1);
  return left;
}

/// sum_j sd_j of single gradients, or sum_l tr (E N_l N_l')^(1/2), from groups of b. Differences of sums may round to below 0.
double noise_norm(DescentNorm norm, const GroupSums& s, double b, const ParameterVector& vector) {
  const double factor = b / (s.groups - 1);
  if (norm == DescentNorm::linf) {
    const at::Tensor variance = (s.squares - s.gradients.square() / s.groups) * factor;
    return variance.clamp_min(0).sqrt().sum().item<double>();
  }
  double sum = 0;
  const std::vector<at::Tensor> gradients = vector.unflatten(s.gradients);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!has_matrix(gradients[i])) continue;
    const at::Tensor covariance = (s.products[i] - square_of(gradients[i]) / s.groups) * factor;
    const at::Tensor values = at::linalg_eigvalsh(covariance);
    // The root makes 1e-8 of a zero that rounds to 1e-16.
    const at::Tensor resolved = values > values.max() * kRoundingOfSums;
    sum += at::where(resolved, values, at::zeros_like(values)).clamp_min(0).sqrt().sum().item<double>();
  }
  return sum;
}

/// Groups in blocks, the one after another into the next block.
struct GroupBlocks {
  double examples = 0, group_size = 1;
  std::vector<GroupSums> blocks;
  GroupSums whole;
  at::Tensor rest;  // sum of the gradients of the examples that fill no group

  GroupBlocks(const GradientGroups& gradients, const ParameterVector& vector)
      : examples(static_cast<double>(gradients.examples)),
        group_size(static_cast<double>(gradients.group_size)) {
    const int64_t groups = gradients.groups();
    blocks.resize(std::min(groups, groups < 2 * kBlocks ? groups : kBlocks));
    for (int64_t j = 0; j < groups; ++j)
      blocks[j % static_cast<int64_t>(blocks.size())].add(gradients.group(j).detach().to(at::kDouble),
                                                          vector);
    for (const GroupSums& block : blocks) whole.add(block);
    rest = at::zeros_like(whole.gradients);
    if (gradients.left_over() > 0)
      rest += gradients.rest().detach().to(at::kDouble) * static_cast<double>(gradients.left_over());
  }
  /// The mean gradient of the examples of `sums` and of no group.
  at::Tensor mean(const GroupSums& sums) const {
    const double left = examples - (whole.groups - sums.groups) * group_size;
    return (sums.gradients * group_size + rest) / left;
  }
};

/// A statistic by the jackknife that leaves out blocks of unequal size (Busing, Meijer & van der Leeden 1999, eq. 2.1 and 2.2).
struct BlockJackknife {
  double corrected = 0, error = 0;  // without the bias of order 1 / groups; standard error
};
BlockJackknife block_jackknife(double whole, const std::vector<double>& left_out, const GroupBlocks& data) {
  const auto blocks = static_cast<double>(left_out.size());
  BlockJackknife result{blocks * whole, 0};
  std::vector<double> shares;  // of the groups
  for (size_t k = 0; k < left_out.size(); ++k) {
    shares.push_back(data.blocks[k].groups / data.whole.groups);
    result.corrected -= (1 - shares[k]) * left_out[k];
  }
  double variance = 0;
  for (size_t k = 0; k < left_out.size(); ++k) {
    const double times = 1 / shares[k], pseudo = times * whole - (times - 1) * left_out[k];
    variance += (pseudo - result.corrected) * (pseudo - result.corrected) / (times - 1) / blocks;
  }
  result.error = std::sqrt(variance);
  return result;
}

/// Everything that the estimates of one norm are made of. Logarithms: noise, signal and scale are products of powers.
struct NormFindings {
  double raw_noise = 0;      // of all groups
  BlockJackknife log_noise;  // bias corrected
  double plain = 0;          // |Gbar|_*: on average too large
  BlockJackknife log_plain;  // its error alone
  double crossed = 0;        // mean_k hbar_k . farthest(the others): on average too small
  double crossed_error = 0;
  double log_ratio_error = 0;  // of noise over plain
  double t = 0;                // of Student's distribution
};

NormFindings norm_findings(DescentNorm norm, const GroupBlocks& data, const ParameterVector& vector) {
  const NormBall ball(norm, vector);
  NormFindings f;
  f.raw_noise = noise_norm(norm, data.whole, data.group_size, vector);
  f.plain = ball.dual_norm(data.mean(data.whole));
  std::vector<double> noises, plains, ratios, along;
  for (const GroupSums& block : data.blocks) {
    const GroupSums others = left_without(data.whole, block);
    noises.push_back(std::log(noise_norm(norm, others, data.group_size, vector)));
    plains.push_back(std::log(ball.dual_norm(data.mean(others))));
    ratios.push_back(noises.back() - plains.back());
    along.push_back(block.gradients.dot(ball.farthest(others.gradients)).item<double>() / block.groups);
    f.crossed += along.back() * block.groups / data.whole.groups;
  }
  double squares = 0;
  for (size_t k = 0; k < along.size(); ++k) {
    const double share = data.blocks[k].groups / data.whole.groups;
    squares += share * share * (along[k] - f.crossed) * (along[k] - f.crossed);
  }
  const auto blocks = static_cast<double>(along.size());
  f.crossed_error = std::sqrt(kSharedBlocks * squares * blocks / (blocks - 1));
  f.log_noise = block_jackknife(std::log(f.raw_noise), noises, data);
  f.log_plain = block_jackknife(std::log(f.plain), plains, data);
  f.log_ratio_error = block_jackknife(std::log(f.raw_noise / f.plain), ratios, data).error;
  f.t = student_quantile(blocks - 1);
  return f;
}

Estimate around(double value, double relative_error, double t) {
  return {value, value * relative_error, value * std::exp(-t * relative_error),
          value * std::exp(t * relative_error)};
}

/// Where the mean gradient has an error: its dual norm lies between the two estimates, and the intervals hold both.
DualNoiseNumbers of_a_sample(const NormFindings& f, double shrink) {
  DualNoiseNumbers numbers;
  numbers.noise = around(std::exp(f.log_noise.corrected) * shrink, f.log_noise.error, f.t);
  const double middle = (f.plain + std::max(0.0, f.crossed)) / 2;
  const double least = std::max(0.0, f.crossed - f.t * f.crossed_error);
  numbers.signal = {middle, f.plain * f.log_plain.error, least, f.plain * std::exp(f.t * f.log_plain.error)};
  numbers.resolved = least > 0;
  const double value = std::pow(numbers.noise.value / middle, 2), error = 2 * f.log_ratio_error;
  const double low = std::pow(numbers.noise.value / f.plain, 2) * std::exp(-f.t * error);
  numbers.scale = {value, value * error, low,
                   least > 0 ? std::pow(numbers.noise.high / least, 2) : kInfinity};
  return numbers;
}

/// Where the examples are the whole set: the mean gradient is exact, and the noise but for the grouping.
DualNoiseNumbers of_the_whole(const NormFindings& f, double shrink, bool single) {
  DualNoiseNumbers numbers;
  const double noise = single ? f.raw_noise : std::exp(f.log_noise.corrected);
  numbers.noise = around(noise * shrink, single ? 0 : f.log_noise.error, f.t);
  numbers.signal = {f.plain, 0, f.plain, f.plain};
  numbers.scale = around(std::pow(noise * shrink / f.plain, 2), single ? 0 : 2 * f.log_noise.error, f.t);
  numbers.resolved = f.plain > 0;
  return numbers;
}

DualNoiseEstimate estimate_in(DescentNorm norm, const GroupBlocks& data, const ParameterVector& vector,
                              double set_examples) {
  const NormFindings f = norm_findings(norm, data, vector);
  if (!(f.raw_noise > 0)) return no_dual_noise_estimate();  // all gradients are the same
  const double shrink = std::sqrt((set_examples - 1) / set_examples);
  const bool all = set_examples == data.examples;
  return {of_a_sample(f, 1), all ? of_the_whole(f, shrink, data.group_size == 1) : of_a_sample(f, shrink)};
}

}  // namespace

DualNoiseEstimates estimate_dual_noise(const GradientGroups& gradients, const ParameterVector& vector,
                                       int64_t set_examples) {
  check_noise_sizes(gradients.groups(), gradients.examples, set_examples);
  const GroupBlocks data(gradients, vector);
  const bool finite =
      std::isfinite(data.whole.squares.sum().item<double>()) && std::isfinite(data.rest.sum().item<double>());
  if (!finite) return {no_dual_noise_estimate(), no_dual_noise_estimate(), false};
  const auto set = static_cast<double>(set_examples);
  return {estimate_in(DescentNorm::linf, data, vector, set),
          estimate_in(DescentNorm::spectral, data, vector, set), true};
}

DualNoiseEstimate no_dual_noise_estimate() {
  const DualNoiseNumbers none{no_estimate(), no_estimate(), no_estimate(), false};
  return {none, none};
}

}  // namespace basin
