// defines: ended_record(), how a run ended, with what was lost of its files made again.
#pragma once

#include <optional>
#include <string>

#include "io/record.h"

namespace basin {

/// The record of a run that is final; nothing where no file says so. run.h5 says it, or, where that is missing or damaged, the journal, of
/// which run.h5 is then made again; status.json is made again where it is missing or says queued. For whoever holds the run's lock, or
/// where nobody can be at work on it.
std::optional<RunRecord> ended_record(const std::string& run_folder);

}  // namespace basin
