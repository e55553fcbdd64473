#include "landscape/radial_profile.h"

#include <algorithm>
#include <cmath>

#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr int kMostHalvings = 60;

struct Bracket {
  double below, above;  // the loss is below the target at the one and not at the other
};

// Nothing where there is none.
bool find_bracket(Ray& ray, double target, const RadiusSearch& search, Bracket& bracket) {
  double r = search.first;
  if (ray.at(r) < target) {
    while (r < search.most) {
      bracket = {r, std::min(2 * r, search.most)};
      if (ray.at(bracket.above) >= target) return true;
      r *= 2;
    }
    return false;
  }
  for (int i = 0; i < kMostHalvings; ++i, r /= 2) {
    bracket = {r / 2, r};
    if (ray.at(bracket.below) < target) return true;
  }
  return false;
}

}  // namespace

double Ray::at(double r) {
  const auto known = known_.find(r);
  if (known != known_.end()) return known->second;
  const double loss = loss_(r);
  return known_[r] = std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

Radius radius_of_rise(Ray& ray, double target, const RadiusSearch& search) {
  Bracket bracket{};
  if (!find_bracket(ray, target, search, bracket)) return {};
  while (bracket.above - bracket.below > search.tolerance * bracket.below) {
    const double middle = std::sqrt(bracket.below * bracket.above);
    (ray.at(middle) < target ? bracket.below : bracket.above) = middle;
  }
  return {std::sqrt(bracket.below * bracket.above), (bracket.above - bracket.below) / 2, true};
}

const char* to_string(VolumeStatus status) {
  switch (status) {
    case VolumeStatus::ok:
      return "ok";
    case VolumeStatus::censored:
      return "censored";
    case VolumeStatus::not_resolved:
      return "not_resolved";
    case VolumeStatus::failed:
      return "failed";
  }
  return "";
}

LogVolume log_volume(const std::vector<double>& radii, int64_t failed, double farthest, double weights) {
  LogVolume volume;
  std::vector<double> logs;
  for (const double radius : radii) {
    if (!std::isnan(radius)) ++volume.reached;
    logs.push_back(std::log(std::isnan(radius) ? farthest : radius));
  }
  volume.directions = static_cast<int64_t>(radii.size()) + failed;
  if (failed > 0) {
    volume.status = VolumeStatus::failed;
    return volume;
  }
  if (volume.reached == 0) return volume;
  const bool all = volume.reached == volume.directions;
  volume.status = all ? VolumeStatus::ok : VolumeStatus::censored;
  const SampleMean mean = mean_of(logs);
  volume.mean_log_radius = mean.value;
  if (all) volume.standard_error = mean.standard_error;
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0, sum_of_squares = 0;  // of (r / largest r)^n
  for (const double log : logs) {
    const double share = std::exp(weights * (log - largest));
    sum += share;
    sum_of_squares += share * share;
  }
  volume.log_mean_power = largest + std::log(sum / static_cast<double>(logs.size())) / weights;
  volume.effective_directions = sum * sum / sum_of_squares;
  return volume;
}

}  // namespace basin
