#include "runs/audit/verdict.h"

#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr double kWidestError = 0.5;  // of the value: a wider one hides a factor of 2

bool is_solvers_bound(const AuditValue& value) {
  return value.uncertainty_kind == UncertaintyKind::residual ||
         value.uncertainty_kind == UncertaintyKind::eigenvalue_bound;
}

double error_of(const AuditValue& value) { return std::isnan(value.uncertainty) ? 0 : value.uncertainty; }

/// It has one that isn't known, as where a search's interval is open on both sides.
bool lacks_error(const AuditValue& value) {
  return value.uncertainty_kind != UncertaintyKind::none && std::isnan(value.uncertainty);
}

/// 95 % half width of the difference of two values drawn like these.
double half_width_of_difference(const std::vector<double>& redrawn) {
  const SampleMean mean = mean_of(redrawn);
  const double deviation = mean.standard_error * std::sqrt(static_cast<double>(mean.samples));
  return student_quantile(static_cast<double>(mean.samples - 1)) * std::sqrt(2) * deviation;
}

}  // namespace

const char* to_string(Kept kept) { return kept == Kept::function ? "function" : "decisions"; }

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::invariant:
      return "invariant";
    case Verdict::within_error:
      return "within_error";
    case Verdict::moved:
      return "moved";
    case Verdict::unresolved:
      return "unresolved";
  }
  return "";
}

Verdict verdict_of(const AuditValue& before, const AuditValue& after, const Redrawn& redrawn,
                   double rounding) {
  if (!std::isfinite(before.value) || !std::isfinite(after.value)) return Verdict::unresolved;
  const double moved_by = std::abs(after.value - before.value);
  const double size = std::max(std::abs(before.value), std::abs(after.value));
  if (moved_by <= rounding * size) return Verdict::invariant;
  const bool bounded = is_solvers_bound(before) && is_solvers_bound(after);
  double error = error_of(before) + error_of(after);
  if (!bounded) {
    if (!redrawn.drawn) return Verdict::moved;
    const double by_draw = half_width_of_difference(redrawn.values);
    if (std::isnan(by_draw)) return Verdict::unresolved;
    error = std::max(by_draw, 2 * std::hypot(error_of(before), error_of(after)));
    if (error <= rounding * size && (lacks_error(before) || lacks_error(after))) return Verdict::unresolved;
  }
  if (moved_by > error) return Verdict::moved;
  if (error > kWidestError * size) return Verdict::unresolved;
  return bounded ? Verdict::invariant : Verdict::within_error;
}

}  // namespace basin
