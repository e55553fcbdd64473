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

h5::Attributes recipe_of(const LandscapeKind& kind, const OptionSets& options, const Terrain& terrain,
                         const LandscapeTask& task) {
  h5::Attributes recipe = {{"kind", kind.name}, {"version", kind.version}};
  const auto append = [&](const h5::Attributes& more) {
    recipe.insert(recipe.end(), more.begin(), more.end());
  };
  append(terrain.recipe());
  for (const Option& option : options.at(kind.name).view(kind.name))
    recipe.emplace_back(option.key, option.get());
  append(task.recipe());
  return recipe;
}

}  // namespace basin
