#include "trainers/hooks/registry.h"

namespace basin {

// One line for each, in the order in which they act and in which their keys stand: NAME_hook() is a function of its own file. New ones
// come last.
// clang-format off
#define BASIN_HOOKS(entry) \
  entry(batch_overlap) \
  entry(milestones) \
  entry(gradient_clipping) \
  entry(lookahead) \
  entry(noise_scale) \
  entry(weight_average) \
  entry(test_time_views) \
  entry(perturbation) \
  entry(example_noise) \
  entry(ledger) \
  entry(stale_gradient) \
  entry(shard_chains)
// clang-format on

#define BASIN_DECLARE(name) HookEntry name##_hook();
BASIN_HOOKS(BASIN_DECLARE)

const std::vector<HookEntry>& hook_registry() {
#define BASIN_MAKE(name) name##_hook(),
  static const std::vector<HookEntry> table{BASIN_HOOKS(BASIN_MAKE)};
  return table;
}

HookList registered_hooks() {
  HookList hooks;
  for (const HookEntry& entry : hook_registry()) hooks.add(entry.make_options());
  return hooks;
}

}  // namespace basin
