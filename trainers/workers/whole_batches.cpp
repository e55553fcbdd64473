#include "trainers/workers/whole_batches.h"

#include "core/error.h"
#include "trainers/batch_plan.h"

namespace basin {

void refuse_divided_batches(const HookCheck& run, const std::string& by) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format("{} and {} exclude each other", by, what));
  };
  if (!run.train.batch_milestones.empty()) refuse("batch_milestones");
  if (run.overlap > 0) refuse("an optimiser with overlap");
  if (run.plan.passes > 1 || run.plan.group > 0) refuse("a gradient in several passes");
}

}  // namespace basin
