// defines: named(), gravest_status() and what else several probes need.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "probes/probe.h"

namespace basin {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct QuantityNaming {
  std::string name, long_name, definition, units;
};
/// A quantity without a value yet.
Quantity named(const QuantityNaming& naming, const std::string& uncertainty_kind);

/// 0.001 -> "1e-3", 0.0005 -> "5e-4", 0.25 -> "2.5e-1": a form that fits names.
std::string short_scientific(double value);

/// The gravest of statuses, or of those of quantities: nonfinite, not_converged, not_resolved, ok.
std::string gravest_status(const std::vector<std::string>& statuses);
std::string gravest_status(const std::vector<Quantity>& quantities);

}  // namespace basin
