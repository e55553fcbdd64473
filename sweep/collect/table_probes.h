// defines: probe_text(), what the table says about a probe for the runs of one cell; pooled_ratio().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probes/registry.h"
#include "sweep/collect/rows.h"

namespace basin {

using RowList = std::vector<const SweepRow*>;

/// A quantity's first entry at the end of training: mean +- standard error over the runs where it came out (n), and in
/// how many it didn't. One run shows its own uncertainty. Measurements on other examples or by another
/// definition are never pooled: "2 settings, not pooled". One of the probe's ratios is pooled by
/// pooled_ratio(): "120 [95, 160] (3)".
std::string probe_text(const RowList& runs, const ProbeEntry& probe, const std::string& quantity);

/// A ratio over the runs of a cell, as of the gradient noise scale (docs/probes.md): the sum of the numerator (tr Sigma) over
/// the sum of the denominator (|G|^2) of its n >= 2 runs, those included whose own denominator is not resolved (leaving them
/// out would favour large ones, and a mean of ratios has no finite mean). 95 % interval by Fieller's theorem on the variances
/// over runs, Student's t with n - 1 degrees of freedom, cut to [0, inf). Not resolved where the mean denominator - t x its
/// standard error <= 0.
struct PooledRatio {
  int64_t runs = 0;
  bool resolved = false;
  double value = 0, low = 0, high = 0;
};
PooledRatio pooled_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators);

/// "51.23 ± 0.40 (3)" of the finite values, "51.23 (1)", or "–"; the error carries two digits, the mean as
/// many decimals.
std::string mean_and_error(const std::vector<double>& values);

}  // namespace basin
