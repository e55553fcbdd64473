// defines: landscape_kinds(), what `basin landscape --kind` can name.
#pragma once

#include <vector>

#include "runs/surfaces/task.h"

namespace basin {

/// A new kind is a file runs/surfaces/<kind>.{h,cpp} and one entry here.
const std::vector<LandscapeKind>& landscape_kinds();

}  // namespace basin
