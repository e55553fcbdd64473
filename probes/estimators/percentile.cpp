#include "probes/estimators/percentile.h"

#include <cmath>
#include <limits>

namespace basin {
namespace {

/// The k-th smallest, k = 1, 2, ...
double at_rank(const std::vector<double>& sorted, double rank) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (rank < 1) return -infinity;
  if (rank > static_cast<double>(sorted.size())) return infinity;
  return sorted[static_cast<size_t>(rank) - 1];
}

double interpolated(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1), below = std::floor(place);
  const double low = at_rank(sorted, below + 1);
  return place == below ? low : low + (place - below) * (at_rank(sorted, below + 2) - low);
}

}  // namespace

Estimate percentile_of(const std::vector<double>& sorted, double percent, int64_t set_numbers) {
  const double q = percent / 100, z = 1.959963984540054;
  const auto n = static_cast<double>(sorted.size()), set = static_cast<double>(set_numbers);
  const double value = interpolated(sorted, q);
  if (n == set) return {value, 0, value, value};
  const double reach = z * std::sqrt(n * q * (1 - q) * (set - n) / (set - 1));
  const double low = at_rank(sorted, std::floor(n * q - reach)),
               high = at_rank(sorted, std::ceil(n * q + reach) + 1);
  return {value, (high - low) / (2 * z), low, high};
}

}  // namespace basin
