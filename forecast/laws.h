// defines: Law, one way to predict updates to a target from small-batch runs, and the table of laws.
#pragma once

#include <string>
#include <vector>

#include "forecast/evidence.h"

namespace basin {

/// Updates that a cell needs at its best rate, in effective updates (SmallRun::effective). NaN where the law lacks a number, and then
/// `reason` says which.
struct LawUpdates {
  double value = NAN;
  std::string reason = {};
};

/// log(updates) is Gaussian with mean log(value) + shift and this deviation.
struct Law {
  std::string name, help;
  LawUpdates (*updates)(const Evidence& evidence, int64_t batch);
  double shift, deviation;
};

/// Every law is S(B) on a straight line in x(B) = (1/B - 1/N)_+ (explain: S = S_min (1 + B_crit x), McCandlish et al. 2018,
/// arXiv 1812.06162, eq. 2.11, for a finite set). b is the largest small size, S(b) its effective updates at its fastest rate,
/// F and B_simple as in SmallRun.
///
///   limits         S_full = sqrt(S_noise S_curv),  S_curv = F,
///                  S_noise = max(S(b) / (1 + B_simple x(b)), F):
///                  what is left of S(b) once noise costs nothing, and what the stability limit allows; no run is faster than
///                  the limit. Then S(B) = S_full + (S(b) - S_full) x(B) / x(b): the line through both. Where S(b) < S_full
///                  the limit binds already at b: S(B) = S(b).
///   inverse        S(B) = max(S(b) b / B, F): perfect scaling down to the stability limit
///   noise_scale    S(B) = S(b) (1 + B_simple x(B)) / (1 + B_simple x(b))
///   fit            the line S = c + e x fitted to the fastest rates of all small sizes by least squares in relative errors, c and
///                  e at least 0; no probes
///   quick_median   the median over the cells of the quick setting, whatever the runs say
///
/// `shift` and `deviation` are calibrated on the nine large-batch cells of the quick setting (forecast/calibration.h, which
/// scripts/forecast_calibration.py makes): the mean of log(measured / value), and twice its standard deviation,
/// because one setting says nothing of the spread between settings. These constants are frozen, and nothing else is
/// tuned. What can go wrong: curvature and noise are those of small-batch weights, and lambda_1 at a given loss moves with
/// B/eta; near interpolation B_simple says little.
const std::vector<Law>& forecast_laws();

/// x(B).
double noise_share(int64_t batch, int64_t examples);

}  // namespace basin
