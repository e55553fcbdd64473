// defines: RUN/probes/done, the note that all probes of a plan were measured, and RUN/probes/failed, that some couldn't be.
#pragma once

#include <string>
#include <vector>

#include "runs/probing.h"

namespace basin {

/// Writes FOLDER/probes/done: a hash of the settings and of the probes' versions, then a line for each file.
void note_probes_done(const std::string& folder, const RunOptions& options,
                      const std::vector<ProbeOutcome>& outcomes);
/// Writes FOLDER/probes/failed, which the next note_probes_done() removes.
void note_probes_failed(const std::string& folder, const std::string& reason);
bool probes_failed(const std::string& folder);
/// Whether all probes of the plan were done with these settings, their files are still there, and no checkpoint is newer.
bool probes_done(const std::string& folder, const RunOptions& options);

}  // namespace basin
