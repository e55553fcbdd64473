#include "forecast/laws.h"

#include <algorithm>
#include <cmath>

#include "forecast/calibration.h"

namespace basin {
namespace {

constexpr double kBetweenSettings = 2;  // times the spread within the quick setting

LawUpdates missing(const std::string& reason) { return {NAN, reason}; }

std::string lacks(const Evidence& evidence, bool curvature, bool noise) {
  if (curvature && std::isnan(evidence.floor))
    return "no resolved preconditioned_curvature of a run that reached the target";
  if (noise && std::isnan(evidence.noise_scale))
    return "no resolved noise_scale (b_simple_finite) next to a curvature of a run that reached the target";
  return "";
}

double on_line(const Evidence& evidence, int64_t batch, double full) {
  const TunedSize& anchor = evidence.anchor();
  const double share = noise_share(batch, evidence.examples) / noise_share(anchor.batch, evidence.examples);
  return full + (anchor.effective - full) * share;
}

LawUpdates by_limits(const Evidence& evidence, int64_t batch) {
  if (const std::string reason = lacks(evidence, true, true); !reason.empty()) return missing(reason);
  const TunedSize& anchor = evidence.anchor();
  const double without_noise =
      anchor.effective / (1 + evidence.noise_scale * noise_share(anchor.batch, evidence.examples));
  const double full = std::sqrt(std::max(without_noise, evidence.floor) * evidence.floor);
  return {on_line(evidence, batch, std::min(full, anchor.effective))};
}

LawUpdates by_inverse(const Evidence& evidence, int64_t batch) {
  if (const std::string reason = lacks(evidence, true, false); !reason.empty()) return missing(reason);
  const TunedSize& anchor = evidence.anchor();
  const auto size = static_cast<double>(std::min(batch, evidence.examples));  // beyond N nothing changes
  const double scaled = anchor.effective * static_cast<double>(anchor.batch) / size;
  return {std::max(scaled, evidence.floor)};
}

LawUpdates by_noise_scale(const Evidence& evidence, int64_t batch) {
  if (const std::string reason = lacks(evidence, false, true); !reason.empty()) return missing(reason);
  const TunedSize& anchor = evidence.anchor();
  const double without_noise =
      anchor.effective / (1 + evidence.noise_scale * noise_share(anchor.batch, evidence.examples));
  return {on_line(evidence, batch, without_noise)};
}

/// c + e x through (x, S), weights 1 / S^2. Where one of them would be negative it is 0, and the other is fitted alone.
std::pair<double, double> relative_line(const std::vector<std::pair<double, double>>& points) {
  double w = 0, x1 = 0, x2 = 0, y = 0, xy = 0;
  for (const auto& [x, s] : points) {
    const double weight = 1 / (s * s);
    w += weight;
    x1 += weight * x;
    x2 += weight * x * x;
    y += weight * s;
    xy += weight * x * s;
  }
  const double slope = (w * xy - x1 * y) / (w * x2 - x1 * x1), constant = (y - slope * x1) / w;
  if (slope < 0) return {y / w, 0};
  if (constant < 0) return {0, xy / x2};
  return {constant, slope};
}

LawUpdates by_fit(const Evidence& evidence, int64_t batch) {
  if (evidence.sizes.size() < 2) return missing("a line needs two batch sizes whose runs reached the target");
  std::vector<std::pair<double, double>> points;
  for (const TunedSize& size : evidence.sizes)
    points.emplace_back(noise_share(size.batch, evidence.examples), size.effective);
  const auto [constant, slope] = relative_line(points);
  return {std::max(1.0, constant + slope * noise_share(batch, evidence.examples))};
}

LawUpdates by_quick_median(const Evidence&, int64_t) { return {kQuickMedian}; }

Law law(const std::string& name, const std::string& help,
        LawUpdates (*updates)(const Evidence& evidence, int64_t batch), const LawError& error) {
  return {name, help, updates, error.shift, kBetweenSettings * error.deviation};
}

}  // namespace

double noise_share(int64_t batch, int64_t examples) {
  return std::max(0.0, 1 / static_cast<double>(batch) - 1 / static_cast<double>(examples));
}

const std::vector<Law>& forecast_laws() {
  static const std::vector<Law> laws = {
      law("limits", "noise scale down to the stability limit: the forecast", by_limits, kLimitsError),
      law("inverse", "baseline: updates in proportion to 1/B down to the stability limit", by_inverse,
          kInverseError),
      law("noise_scale", "baseline: S(B) with B_simple", by_noise_scale, kNoiseScaleError),
      law("fit", "baseline: S(B) fitted to the small batch sizes, without probes", by_fit, kFitError),
      law("quick_median", "baseline: the median of the quick setting", by_quick_median, kQuickMedianError),
  };
  return laws;
}

}  // namespace basin
