// defines: estimated() and noise_quantities(), what probes of gradient noise report of their estimates.
#pragma once

#include <string>
#include <vector>

#include "hessian/per_example_gradients.h"
#include "probes/common.h"
#include "probes/noise_estimate.h"

namespace basin {

/// Fewer groups (or single examples) than this say nothing about a spread.
inline constexpr int64_t kLeastGroups = 8;

/// What a number is of: a distribution, or the finite set, then with "_finite" behind the name.
enum class Side { population, finite };

/// A number that does not exist: too few examples, or gradients that are not finite.
Estimate no_estimate();
NoiseEstimate no_noise_estimate();

/// nonfinite, else not_resolved where there is no number or `resolved` is false, else ok.
std::string status_of(const Estimate& estimate, bool resolved, bool nonfinite);
/// Side and "-population" or "-finite" are added to name, long name and definition of `naming`.
Quantity estimated(const QuantityNaming& naming, Side side, const Estimate& estimate,
                   const std::string& status);
/// b_simple, g2 and tr_sigma. `nonfinite`: a gradient was; the numbers are those of no_noise_estimate() then.
std::vector<Quantity> noise_quantities(const NoiseNumbers& numbers, Side side, bool nonfinite);
/// One line for the result of a probe where the mean gradient is not resolved on one side or the other.
std::string unresolved_message(const NoiseEstimate& estimate);

/// Of the examples' gradients, from a pass for the norms and one for the products with their mean.
ExampleProducts example_products(const at::Tensor& squared_norms, const at::Tensor& along_mean,
                                 double mean_square);
std::vector<double> to_doubles(const at::Tensor& numbers);

}  // namespace basin
