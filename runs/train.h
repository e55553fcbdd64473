// defines: train_run(), one run from its options to its files.
#pragma once

#include <string>

#include "io/run_state.h"
#include "ranks/rank_group.h"
#include "study/run_options.h"

namespace basin {

/// Trains the run in its folder, which it makes, or goes on from its newest checkpoint; returns at once where the run is
/// final. IoError where the folder's run saw other data than lie at options.data now. Returns the run's
/// status (finished, target_not_reached, diverged). An exception leaves status failed with its
/// message; a signal leaves a resumable state and throws Interrupted.
///
/// All ranks call it with the same options and a folder that all of them see; rank 0 alone writes. ConfigError where they have other
/// options or data. A signal to any of them stops all. RankLost where one is gone: the run is interrupted then, and goes on
/// from its last checkpoint with the next call, whatever the number of ranks; another number adds in another order, so bits may differ
/// from there on.
RunState train_run(const RunOptions& options, const std::string& folder,
                   const RankGroup& ranks = RankGroup::alone());

/// DataError or DeviceError where a run with these options could not begin. For before train_run(), so that nothing is made
/// and a run that can be resumed stays as it is; reads the data once more (CIFAR-10: half a second).
void require_inputs(const RunOptions& options);

}  // namespace basin
