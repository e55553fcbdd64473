// defines: comparison_text(), what must be the same in the runs of a forecast and in its test runs.
#pragma once

#include <string>

#include "study/run_options.h"

namespace basin {

/// "model = ...\nloss = ...\n": model with its options, data set with its options, loss and target. Sizes, rates, caps, cadences and
/// optimisers may differ.
std::string comparison_text(const RunOptions& options);
/// The first line of `a` that isn't that of `b`, with both values: "target_loss (1.5 and 1.2)".
std::string compared_difference(const std::string& a, const std::string& b);

}  // namespace basin
