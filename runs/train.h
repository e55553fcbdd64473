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

/// DataError or DeviceError where a run with these options could not begin. For before train_run(), so that nothing is made
/// and a run that can be resumed stays as it is; reads the data once more (CIFAR-10: half a second).
void require_inputs(const RunOptions& options);

}  // namespace basin
