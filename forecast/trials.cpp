#include "forecast/trials.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/math/philox.h"
#include "forecast/calibration.h"

namespace basin {
namespace {

constexpr uint32_t kDraws = 20000;  // a quantile's own error is below 0.02 of the spread
constexpr std::array<uint32_t, 2> kKey = {0x6261736e, 0x666f7265};

struct Normals {
  double updates, rate, edge;
};

/// Box and Muller's, of the words at this place.
Normals normals_at(uint32_t draw) {
  const auto uniform = [](uint32_t word) { return (word + 0.5) / 4294967296.0; };
  const auto pair = [&](uint32_t a, uint32_t b) {
    const double radius = std::sqrt(-2 * std::log(uniform(a))), angle = 2 * M_PI * uniform(b);
    return std::pair{radius * std::cos(angle), radius * std::sin(angle)};
  };
  const auto words = philox({draw, 0, 0, 0}, kKey);
  const auto [updates, rate] = pair(words[0], words[1]);
  return {updates, rate, pair(words[2], words[3]).first};
}

/// The least effective updates over the trials; infinite where all lie beyond the edge.
double fastest(const std::vector<double>& rates, double log_best, double log_rate, double log_edge) {
  double least = std::numeric_limits<double>::infinity();
  for (const double rate : rates) {
    const double away = std::log(rate) - log_rate;
    if (away > log_edge) continue;
    least = std::min(least, log_best + kCurvatureInRate * away * away / 2);
  }
  return std::exp(least);
}

double quantile(const std::vector<double>& sorted, double level) {
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(place);
  const double share = place - static_cast<double>(low);
  if (share == 0 || std::isinf(sorted[low])) return sorted[low];
  return sorted[low] + share * (sorted[low + 1] - sorted[low]);
}

}  // namespace

Prediction predict_cell(const Law& law, const Evidence& evidence, const TestCell& cell) {
  Prediction prediction;
  const LawUpdates best = law.updates(evidence, cell.batch);
  prediction.reason = best.reason;
  if (std::isnan(best.value)) return prediction;
  const double mean = std::log(best.value) + law.shift;
  const TunedSize& anchor = evidence.anchor();
  const double rate_time = std::log(anchor.rate) + std::log(anchor.effective);
  std::vector<double> logs;
  int64_t missed = 0;
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const Normals z = normals_at(draw);
    const double log_best = mean + law.deviation * z.updates;
    const double log_rate = rate_time - log_best + kRateError * z.rate;
    const double log_edge = std::log(kEdge) + kEdgeError * z.edge;
    const double updates = cell.updates_of(fastest(cell.rates, log_best, log_rate, log_edge));
    missed += std::isinf(updates) ? 1 : 0;
    logs.push_back(std::log(updates));
  }
  std::sort(logs.begin(), logs.end());
  for (size_t i = 0; i < kLevels.size(); ++i) prediction.quantiles[i] = quantile(logs, kLevels[i]);
  prediction.not_reached = static_cast<double>(missed) / kDraws;
  return prediction;
}

double expected_updates(const Prediction& prediction, const TestCell& cell) {
  const double median = std::exp(prediction.quantiles[2]);
  return std::isfinite(median) ? std::min(median, static_cast<double>(cell.cap()))
                               : static_cast<double>(cell.cap());
}

}  // namespace basin
