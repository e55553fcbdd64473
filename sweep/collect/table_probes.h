// defines: probe_text() and noise_text(), what the table says of a probe for the runs of one cell;
// pooled_noise().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/collect/rows.h"

namespace basin {

using RowList = std::vector<const SweepRow*>;

/// A quantity's first entry at the end of training: mean +- standard error over the runs where it came out (n), and in
/// how many it didn't. One run shows its own uncertainty. Measurements on other examples or by another
/// definition are never pooled: "2 settings, not pooled".
std::string probe_text(const RowList& runs, const std::string& probe, const std::string& quantity);

/// Gradient noise scale of a cell (docs/probes.md): B = sum of tr Sigma / sum of |G|^2 over its n >= 2 runs,
/// those included whose own |G|^2 is not resolved (leaving them out would favour large |G|^2, and a mean of
/// ratios has no finite mean). 95 % interval by Fieller's theorem on the variances over runs, Student's t
/// with n - 1 degrees of freedom, cut to [0, inf). Not resolved where mean |G|^2 - t x its standard error <= 0.
struct PooledNoise {
  int64_t runs = 0;
  bool resolved = false;
  double value = 0, low = 0, high = 0;
};
PooledNoise pooled_noise(const std::vector<double>& tr_sigma, const std::vector<double>& g2);

/// "120 [95, 160] (3)" or "not resolved (3)"; one run shows its own value and interval.
std::string noise_text(const RowList& runs);

/// "51.23 ± 0.40 (3)" of the finite values, "51.23 (1)", or "–"; the error carries two digits, the mean as
/// many decimals.
std::string mean_and_error(const std::vector<double>& values);

}  // namespace basin
