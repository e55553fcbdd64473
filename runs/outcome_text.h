// defines: outcome_text() and in_colour() of how a run ended: what a line about a finished run says.
#pragma once

#include <string>

#include "io/status_file.h"

namespace basin {

/// "  training loss 1.493, test accuracy 51.2 %", and why a run did not come to its end. What the run's file lacks is left out.
std::string outcome_text(const std::string& run_folder, const RunStatus& status);

/// The state's word: green where the run came to its end, yellow where it missed its target, red where it was lost.
std::string in_colour(RunState state);

}  // namespace basin
