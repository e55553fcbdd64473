// defines: verdict_of(), whether a measure moved when the weights changed and the function didn't; Kept, what else didn't.
#pragma once

#include <string>
#include <vector>

#include "io/quantity.h"

namespace basin {

/// What a transformation of the weights leaves as it was: the function, or the classes that it decides on alone.
enum class Kept { function, decisions };
const char* to_string(Kept kept);

/// One number of a probe.
struct AuditValue {
  double value = 0, uncertainty = 0;
  UncertaintyKind uncertainty_kind = UncertaintyKind::none;
};

/// The same measure of the same network by several seeds of the probe.
struct Redrawn {
  std::vector<double> values;
  bool drawn = true;  // whether the probe found anything else by another seed, in this number or another
};

enum class Verdict { invariant, within_error, moved, unresolved };
const char* to_string(Verdict verdict);

/// With d = |after - before|, s the larger of |before| and |after|, and `redrawn` of the network as before,
/// the first that holds of:
/// - unresolved: before or after isn't finite;
/// - invariant: d <= rounding s, or, where both errors are a solver's bound (residual,
///   eigenvalue_bound), d is at most their sum;
/// - moved: d is beyond the sum of those bounds; or nothing is drawn, so that the number's own error is over
///   the examples, which are the same ones; or d is beyond the error e of the draws;
/// - unresolved: one of `redrawn` isn't finite; or they agree and the number's own error isn't known; or e
///   or the sum of the bounds is above s/2;
/// - within_error: a network with units in other places gets other draws; invariance is shown up to e.
///
/// e is the larger of t sqrt(2) s_r, the 95 % half width of a difference between two values like `redrawn`
/// (standard deviation s_r, Student's t), and 2 sqrt(u_before^2 + u_after^2) of the numbers' own errors: few
/// seeds may agree where draws decide between few outcomes, as a bisection's steps.
///
/// `rounding`: 1e-6 for float64 and 1e-2 for float32, as a share: what searches and differences of losses
/// make of 1e-16 and 1e-7.
Verdict verdict_of(const AuditValue& before, const AuditValue& after, const Redrawn& redrawn,
                   double rounding);

}  // namespace basin
