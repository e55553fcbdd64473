#include "probes/noise_quantities.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "probes/set_estimates.h"

namespace basin {

Estimate no_estimate() { return {kNaN, kNaN, kNaN, kNaN}; }

NoiseEstimate no_noise_estimate() {
  const NoiseNumbers none{no_estimate(), no_estimate(), no_estimate(), false};
  return {none, none, true};
}

std::string status_of(const Estimate& estimate, bool resolved, bool nonfinite) {
  if (nonfinite) return "nonfinite";
  return std::isnan(estimate.value) || !resolved ? "not_resolved" : "ok";
}

Quantity estimated(const QuantityNaming& naming, Side side, const Estimate& estimate,
                   const std::string& status) {
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

std::vector<double> to_doubles(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.to(at::kCPU, at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

ExampleProducts example_products(const at::Tensor& squared_norms, const at::Tensor& along_mean,
                                 double mean_square) {
  return {to_doubles(squared_norms), to_doubles(along_mean), mean_square};
}

}  // namespace basin
