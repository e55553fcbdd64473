#include "probes/estimators/sigma_search.h"
#include "core/math/nan.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

namespace basin {
namespace {

/// Where the drop, or one end of its interval, crosses the target.
struct Crossing {
  double sigma = NAN;
  bool below_range = false, above_range = false, converged = true;
};

class Bisection {
 public:
  Bisection(const DropFunction& drop, const SigmaSearch& search) : drop_(drop), search_(search) {
    look(search.low);
    look(search.high);
  }

  /// Where drop + side t (standard error) crosses, side in -1, 0, 1.
  Crossing crossing(int side) {
    auto above = seen_.begin();
    while (above != seen_.end() && !is_above(above->second, side)) ++above;
    Crossing found;
    found.above_range = above == seen_.end();
    found.below_range = above == seen_.begin();
    if (found.above_range || found.below_range) return found;
    double high = above->first, low = std::prev(above)->first;
    for (int64_t i = 0; !is_narrow(low, high); ++i) {
      if (i == search_.iterations) {
        found.converged = false;
        break;
      }
      const double middle = middle_of(low, high);
      const SampleMean& at_middle = look(middle);
      if (side == 0 && is_near(at_middle)) {
        found.sigma = middle;
        return found;
      }
      (is_above(at_middle, side) ? high : low) = middle;
    }
    found.sigma = middle_of(low, high);
    return found;
  }

  const std::map<double, SampleMean>& seen() const { return seen_; }
  double quantile() const { return student_quantile(static_cast<double>(seen_.begin()->second.samples) - 1); }

 private:
  const SampleMean& look(double sigma) {
    const auto found = seen_.find(sigma);
    return found != seen_.end() ? found->second : seen_.emplace(sigma, drop_(sigma)).first->second;
  }
  bool is_above(const SampleMean& drop, int side) const {
    const double margin = side == 0 ? 0 : side * quantile() * drop.standard_error;
    return drop.value + margin > search_.target;
  }
  bool is_near(const SampleMean& drop) const {
    return std::abs(drop.value - search_.target) < search_.drop_tolerance;
  }
  bool is_narrow(double low, double high) const { return high - low <= search_.tolerance * low; }
  double middle_of(double low, double high) const {
    return search_.geometric ? std::sqrt(low * high) : (low + high) / 2;
  }

  const DropFunction& drop_;
  const SigmaSearch& search_;
  std::map<double, SampleMean> seen_;
};

double standard_error_of(const SigmaFound& found, double quantile) {
  const bool low = found.ci_low > 0, high = std::isfinite(found.ci_high);
  if (low && high) return (found.ci_high - found.ci_low) / 2 / quantile;
  if (low) return (found.sigma - found.ci_low) / quantile;
  return high ? (found.ci_high - found.sigma) / quantile : NAN;
}

SigmaFound not_in_range(const Crossing& crossing, const SigmaSearch& search) {
  SigmaFound found;
  found.status = ProbeStatus::not_resolved;
  found.reason =
      crossing.above_range
          ? fmt::format("accuracy drops by less than {} up to sigma = {}", search.target, search.high)
          : fmt::format("accuracy already drops by more than {} at sigma = {}", search.target, search.low);
  return found;
}

}  // namespace

SigmaFound search_sigma(const DropFunction& drop, const SigmaSearch& search) {
  Bisection bisection(drop, search);
  const Crossing crossing = bisection.crossing(0);
  SigmaFound found;
  if (crossing.above_range || crossing.below_range) {
    found = not_in_range(crossing, search);
  } else {
    const Crossing low = bisection.crossing(1), high = bisection.crossing(-1);
    found.sigma = crossing.sigma;
    found.ci_low = low.below_range ? 0 : low.sigma;
    found.ci_high = high.above_range ? kInfinity : high.sigma;
    found.standard_error = standard_error_of(found, bisection.quantile());
    found.status = crossing.converged ? ProbeStatus::ok : ProbeStatus::not_converged;
    if (!crossing.converged) found.reason = fmt::format("{} halvings left a wide bracket", search.iterations);
  }
  for (const auto& [sigma, mean] : bisection.seen()) {
    found.sigmas.push_back(sigma);
    found.drops.push_back(mean.value);
    found.errors.push_back(mean.standard_error);
  }
  return found;
}

}  // namespace basin
