// defines: train_run(), one run from its options to its files.
#pragma once

#include <string>

#include "io/run_state.h"
#include "study/run_options.h"

namespace basin {

/// Trains the run in its folder, which it makes, or goes on from its newest checkpoint; returns at once where the run is
/// final. IoError where the folder's run saw other data than lie at options.data now. Returns the run's
/// status (finished, target_not_reached, diverged). An exception leaves status failed with its
/// message; a signal leaves a resumable state and throws Interrupted.
RunState train_run(const RunOptions& options, const std::string& folder);

/// DataError or the device's error where a run with these options could not begin. For before its folder is made.
void require_inputs(const RunOptions& options);

}  // namespace basin
