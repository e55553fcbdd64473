// defines: setting_text(), arm_text(), cell_text(), what must be the same in the runs of a forecast and in its test runs.
#pragma once

#include <string>

#include "study/run_options.h"

namespace basin {

/// One line "key = value" for each option that decides how many updates are needed: of all runs of a forecast and its test runs
/// alike (model, data, loss, target, ghost batch, clipping, noise, ...), which may differ in optimiser, batch size, rate, schedule,
/// cap, cadences and seed. An option that is not known here to be harmless is compared.
std::string setting_text(const RunOptions& options);
/// The optimiser's own options: the same in all runs of one optimiser.
std::string arm_text(const RunOptions& options);
/// All that decides it but rate and seed: the same in all trials of one optimiser at one size.
std::string cell_text(const RunOptions& options);

/// The first line of `a` that isn't that of `b`, with both values: "target_loss (1.5 and 1.2)".
std::string compared_difference(const std::string& a, const std::string& b);

}  // namespace basin
