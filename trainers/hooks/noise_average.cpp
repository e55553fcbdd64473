#include "trainers/hooks/noise_average.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr size_t kNumbers = 7;

Estimate with_error(double value, double variance, double t) {
  const double error = std::sqrt(variance);
  return {value, error, value - t * error, value + t * error};
}

}  // namespace

void NoiseAverage::add(double tr_sigma, double g2) {
  weight_ = beta_ * weight_ + 1;
  const double share = 1 / weight_, rest = 1 - share;
  const double trace_off = tr_sigma - trace_, g2_off = g2 - g2_;
  squares_ = rest * rest * squares_ + share * share;
  trace_ += share * trace_off;
  g2_ += share * g2_off;
  trace_trace_ = rest * (trace_trace_ + share * trace_off * trace_off);
  g2_g2_ = rest * (g2_g2_ + share * g2_off * g2_off);
  trace_g2_ = rest * (trace_g2_ + share * trace_off * g2_off);
}

NoiseMeans NoiseAverage::means() const {
  NoiseMeans means;
  means.looks = weight_ > 0 ? 1 / squares_ : 0;
  const bool spread = means.looks > 1.5;  // one look has none; with a beta near 0 there never is more
  const double variance = spread ? squares_ / (1 - squares_) : NAN;
  const double t = spread ? student_quantile(std::round(means.looks - 1)) : NAN;
  means.tr_sigma = with_error(weight_ > 0 ? trace_ : NAN, variance * trace_trace_, t);
  means.g2 = with_error(weight_ > 0 ? g2_ : NAN, variance * g2_g2_, t);
  means.resolved = means.g2.low > 0;
  means.b_simple = fieller_ratio(means.tr_sigma.value, means.g2.value, variance * trace_trace_,
                                 variance * g2_g2_, variance * trace_g2_, t);
  return means;
}

std::vector<double> NoiseAverage::state() const {
  return {weight_, squares_, trace_, g2_, trace_trace_, g2_g2_, trace_g2_};
}

void NoiseAverage::load_state(const std::vector<double>& state) {
  if (state.size() != kNumbers) {
    throw IoError(
        fmt::format("checkpoint: the noise scale's means have {} numbers, not {}", state.size(), kNumbers));
  }
  weight_ = state[0];
  squares_ = state[1];
  trace_ = state[2];
  g2_ = state[3];
  trace_trace_ = state[4];
  g2_g2_ = state[5];
  trace_g2_ = state[6];
}

}  // namespace basin
