#include "optim/registry.h"

namespace basin {

// One line for each, in the order of lists and figures: NAME_entry() is a function of its own file.
// clang-format off
#define BASIN_OPTIMIZERS(entry) \
  entry(sgd) \
  entry(adam) \
  entry(adamw) \
  entry(lars) \
  entry(larc) \
  entry(lamb) \
  entry(lambc) \
  entry(lion) \
  entry(signsgd) \
  entry(muon) \
  entry(adafactor) \
  entry(shampoo) \
  entry(soap) \
  entry(schedule_free_sgd) \
  entry(schedule_free_adamw) \
  entry(lbfgs)
// clang-format on

#define BASIN_DECLARE(name) OptimizerEntry name##_entry();
BASIN_OPTIMIZERS(BASIN_DECLARE)

const std::vector<OptimizerEntry>& optimizer_registry() {
#define BASIN_MAKE(name) name##_entry(),
  static const std::vector<OptimizerEntry> table{BASIN_OPTIMIZERS(BASIN_MAKE)};
  return table;
}

}  // namespace basin
