// defines: Estimate, a number with error and interval; fieller_ratio() and signed_ratio().
#pragma once

namespace basin {

struct Estimate {
  double value = 0, error = 0, low = 0,
         high = 0;  // standard error and 95 % interval; NaN where there is none
};

/// Fieller's 95 % set for a / b with variances vaa, vbb, covariance vab and quantile t, cut to [0, inf): both
/// are averages of squares. An interval where b is resolved and positive, else [root, inf) or [0, inf).
Estimate fieller_ratio(double a, double b, double vaa, double vbb, double vab, double t);
/// The same of numbers of either sign, not cut: an interval where b is resolved and positive, else all
/// numbers.
Estimate signed_ratio(double a, double b, double vaa, double vbb, double vab, double t);

}  // namespace basin
