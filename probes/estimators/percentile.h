// defines: percentile_of(), a percentile with a distribution-free interval.
#pragma once

#include <vector>

#include "probes/estimators/noise_estimate.h"

namespace basin {

/// The percentile (0 < percent < 100) of a set of N numbers, of which `sorted` are n drawn without
/// replacement: linear between the two nearest ranks (type 7 of Hyndman & Fan 1996). The 95 % interval is
/// from the ranks n q -+ 1.96 sqrt(n q (1 - q) (N - n) / (N - 1)), rounded outwards: the count of numbers
/// below the percentile has that spread, whatever they are distributed by. A rank outside of 1 .. n leaves
/// the interval open there (minus or plus infinity). The standard error is its width over 2 x 1.96; n = N has
/// none.
Estimate percentile_of(const std::vector<double>& sorted, double percent, int64_t set_numbers);

}  // namespace basin
