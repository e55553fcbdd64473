#include "hessian/eigenpairs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace basin {
namespace {

double machine_epsilon(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

}  // namespace

const char* to_string(SolverStatus status) {
  switch (status) {
    case SolverStatus::converged:
      return "converged";
    case SolverStatus::not_converged:
      return "not_converged";
    case SolverStatus::nonfinite:
      return "nonfinite";
  }
  return "";
}

ErrorLimits::ErrorLimits(const TopEigenOptions& options, at::ScalarType type)
    : tolerance(options.tolerance), noise(32 * machine_epsilon(type)), by_value(options.stop_by_value) {}

double ErrorLimits::large(double value, double radius) const {
  return std::max(tolerance * std::abs(value), noise * radius);
}

double ErrorLimits::small(double value, double radius) const {
  return std::max(tolerance * std::max(std::abs(value), kSmallEndFloor * radius), noise * radius);
}

void judge(TopEigenResult& result, const ErrorLimits& limits) {
  double radius = 0;
  for (const auto* end : {&result.largest, &result.smallest}) {
    for (const Eigenpair& pair : *end) radius = std::max(radius, std::abs(pair.value));
  }
  const auto error = [&](const Eigenpair& pair) { return limits.error(pair.residual, pair.value_bound); };
  for (Eigenpair& pair : result.largest) pair.converged = error(pair) <= limits.large(pair.value, radius);
  for (Eigenpair& pair : result.smallest) pair.converged = error(pair) <= limits.small(pair.value, radius);
  for (const auto* end : {&result.largest, &result.smallest}) {
    for (const Eigenpair& pair : *end) {
      if (!pair.converged) result.status = SolverStatus::not_converged;
      if (!std::isfinite(pair.residual)) result.status = SolverStatus::nonfinite;
    }
  }
  const auto by_value = [](const Eigenpair& a, const Eigenpair& b) { return a.value < b.value; };
  std::stable_sort(result.largest.rbegin(), result.largest.rend(), by_value);
  std::stable_sort(result.smallest.begin(), result.smallest.end(), by_value);
}

}  // namespace basin
