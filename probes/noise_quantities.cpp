#include "probes/noise_quantities.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace basin {

int64_t noise_group_size(int64_t asked, int64_t examples) {
  return std::max<int64_t>(1, std::min(asked, examples / kLeastGroups));
}

ProbeStatus status_of(const Estimate& estimate, bool resolved, bool nonfinite) {
  if (nonfinite) return ProbeStatus::nonfinite;
  return std::isnan(estimate.value) || !resolved ? ProbeStatus::not_resolved : ProbeStatus::ok;
}

Quantity measured(const QuantityNaming& naming, const Estimate& estimate, ProbeStatus status) {
  Quantity q = named(naming, estimate.error == 0 ? UncertaintyKind::none : UncertaintyKind::standard_error);
  q.value = {estimate.value};
  q.uncertainty = {estimate.error};
  q.ci_low = {estimate.low};
  q.ci_high = {estimate.high};
  q.status = status;
  return q;
}

Quantity estimated(const QuantityNaming& naming, Side side, const Estimate& estimate, ProbeStatus status) {
  const bool population = side == Side::population;
  return measured({population ? naming.name : naming.name + "_finite",
                   naming.long_name + (population ? "" : ", of the finite set"),
                   naming.definition + (population ? "-population" : "-finite"), naming.units},
                  estimate, status);
}

std::vector<Quantity> noise_quantities(const NoiseNumbers& numbers, Side side, bool nonfinite) {
  const auto make = [&](const std::string& name, const std::string& long_name, const std::string& units,
                        const Estimate& estimate, bool resolved) {
    return estimated({name, long_name, "noise-scale", units}, side, estimate,
                     status_of(estimate, resolved, nonfinite));
  };
  const std::string gradient_units = "(loss/weight)^2";
  return {make("b_simple", "gradient noise scale", "examples", numbers.b_simple, numbers.resolved),
          make("g2", "squared norm of the mean gradient", gradient_units, numbers.g2, numbers.resolved),
          make("tr_sigma", "trace of the gradient covariance", gradient_units, numbers.tr_sigma, true)};
}

std::string unresolved_message(const NoiseEstimate& estimate) {
  const Estimate& g2 = (estimate.population.resolved ? estimate.finite : estimate.population).g2;
  if (std::isnan(g2.value)) return fmt::format("fewer than {} examples", kLeastGroups);
  return fmt::format("|G|^2 = {:.3g}, 95 % interval {:.3g} to {:.3g}: the mean gradient is not resolved",
                     g2.value, g2.low, g2.high);
}

}  // namespace basin
