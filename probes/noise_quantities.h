// defines: estimated() and noise_quantities(), what probes of gradient noise report of their estimates.
#pragma once

#include <string>
#include <vector>

#include "probes/common.h"
#include "probes/estimators/noise_estimate.h"

namespace basin {

/// Fewer groups (or single examples) than this say nothing about a spread.
inline constexpr int64_t kLeastGroups = 8;
/// Examples per group: what was asked for, or fewer where that makes too few groups.
int64_t noise_group_size(int64_t asked, int64_t examples);

/// What a number is of: a distribution, or the finite set, then with "_finite" behind the name.
enum class Side { population, finite };

/// nonfinite, else not_resolved where there is no number or `resolved` is false, else ok.
ProbeStatus status_of(const Estimate& estimate, bool resolved, bool nonfinite);
/// A quantity of an estimate; its uncertainty is a standard error, or none where the error is 0.
Quantity measured(const QuantityNaming& naming, const Estimate& estimate, ProbeStatus status);

/// Side and "-population" or "-finite" are added to name, long name and definition of `naming`.
Quantity estimated(const QuantityNaming& naming, Side side, const Estimate& estimate, ProbeStatus status);
/// b_simple, g2 and tr_sigma. `nonfinite`: a gradient was; the numbers are those of no_noise_estimate() then.
std::vector<Quantity> noise_quantities(const NoiseNumbers& numbers, Side side, bool nonfinite);
/// One line for the result of a probe where the mean gradient is not resolved on one side or the other.
std::string unresolved_message(const NoiseEstimate& estimate);

}  // namespace basin
