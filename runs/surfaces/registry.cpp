#include "runs/surfaces/registry.h"

namespace basin {

// One line for each, in the order of lists: NAME_landscape() is a function of its own file.
// clang-format off
#define BASIN_LANDSCAPES(entry) \
  entry(line) \
  entry(plane) \
  entry(trajectory) \
  entry(barrier) \
  entry(curve) \
  entry(radial)
// clang-format on

#define BASIN_DECLARE(name) LandscapeKind name##_landscape();
BASIN_LANDSCAPES(BASIN_DECLARE)

const std::vector<LandscapeKind>& landscape_kinds() {
#define BASIN_MAKE(name) name##_landscape(),
  static const std::vector<LandscapeKind> table{BASIN_LANDSCAPES(BASIN_MAKE)};
  return table;
}

}  // namespace basin
