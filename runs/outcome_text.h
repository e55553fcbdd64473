// defines: outcome_text(), the end of a line about a run that ended.
#pragma once

#include <string>

#include "io/status_file.h"

namespace basin {

/// "  training loss 1.493, test accuracy 51.2 %", and why a run did not come to its end. What the run's file lacks is left out.
std::string outcome_text(const std::string& run_folder, const RunStatus& status);

}  // namespace basin
