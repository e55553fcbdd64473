#include "probes/registry.h"

namespace basin {

// One line for each, in the order of lists and figures: NAME_entry() is a function of its own file.
// clang-format off
#define BASIN_PROBES(entry) \
  entry(top_eigenvalues) \
  entry(sharpness_keskar) \
  entry(noise_scale) \
  entry(gradient_statistics) \
  entry(noise_curvature) \
  entry(batch_sharpness) \
  entry(curvature) \
  entry(preconditioned_curvature) \
  entry(sharpness_sam) \
  entry(sharpness_adaptive) \
  entry(pac_bayes) \
  entry(relative_flatness) \
  entry(fisher_rao) \
  entry(weight_norms) \
  entry(margins)
// clang-format on

#define BASIN_DECLARE(name) ProbeEntry name##_entry();
BASIN_PROBES(BASIN_DECLARE)

const std::vector<ProbeEntry>& probe_registry() {
#define BASIN_MAKE(name) name##_entry(),
  static const std::vector<ProbeEntry> table{BASIN_PROBES(BASIN_MAKE)};
  return table;
}

}  // namespace basin
