// defines: Evidence, what the small-batch runs say about one optimiser; evidence_for().
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "forecast/small_runs.h"

namespace basin {

/// The fastest rate of one batch size.
struct TunedSize {
  int64_t batch = 0;
  double rate = NAN, updates = NAN,
         effective = NAN;  // medians over the seeds; a seed that didn't reach it counts as infinite
};

struct Evidence {
  std::string optimizer, arm;  // arm_text() of its runs
  int64_t examples = 0;
  std::vector<TunedSize> sizes;  // by batch size; the last is the anchor
  double floor = NAN,
         noise_scale =
             NAN;  // geometric means over the seeds of the fastest probed rate at the largest probed size
  int64_t probed_batch = 0;  // that size; 0: nothing was probed

  const TunedSize& anchor() const { return sizes.back(); }
};

/// ConfigError where no run of this optimiser reached the target, or two have other options of the optimiser.
Evidence evidence_for(const std::string& optimizer, const std::vector<SmallRun>& runs,
                      const std::string& where);

}  // namespace basin
