// defines: refuse_divided_batches(), for rules by which each update has one batch, taken whole.
#pragma once

#include <string>

#include "trainers/hook_options.h"

namespace basin {

/// ConfigError "BY and ... exclude each other" where batches grow, overlap, or have their gradient taken in several passes or groups.
void refuse_divided_batches(const HookCheck& run, const std::string& by);

}  // namespace basin
