// defines: search_sigma(), the noise at which a mean drop reaches a target.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/math/statistics.h"
#include "io/quantity.h"

namespace basin {

/// sigma -> the mean drop over the draws of noise and its standard error. The draws are the same for every
/// sigma, so that the drop rises with sigma in practice.
using DropFunction = std::function<SampleMean(double sigma)>;

struct SigmaSearch {
  double target = 0.1;
  double low = 1e-4, high = 2;  // the range
  bool geometric = true;        // middles of a bracket: sqrt(a b), or (a + b)/2
  double tolerance = 0.01;      // ends at a bracket of this width over sigma
  double drop_tolerance = 0;    // or where the drop is this near to the target; 0: never
  int64_t iterations = 30;      // halvings at most
};

struct SigmaFound {
  double sigma = NAN;                    // NaN where there is none in the range
  double standard_error = NAN;           // half the interval over its quantile, or its one finite side
  double ci_low = NAN, ci_high = NAN;    // 95 %; 0 and infinity where an end lies beyond the range
  ProbeStatus status = ProbeStatus::ok;  // not_converged: the cap ended it; not_resolved: not in the range
  std::string reason;
  std::vector<double> sigmas, drops, errors;  // all that was looked at, by rising sigma
};

/// By bisection. The interval is where the drop's own 95 % interval (Student's t) contains the target, each
/// end found by bisection too: it covers the choice of draws, not that of the examples. An end of the range
/// is never a value.
SigmaFound search_sigma(const DropFunction& drop, const SigmaSearch& search);

}  // namespace basin
