// defines: recover_run(), a run's record from its journal.
#pragma once

#include <string>

#include "io/record.h"

namespace basin {

struct Recovery {
  RunRecord record;
  bool was_whole = false;  // run.h5 has more than the journal: it stays as it is
  bool torn = false;       // the journal's last entry was cut off by a crash and left out
};

/// Writes RUN/run.h5 anew from RUN/journal. A journal that doesn't say how its run ended leaves that to status.json, where the results are
/// there too; otherwise the run was interrupted, and status.json says so afterwards. Holds the run's lock. IoError where the
/// folder has no journal, ConfigError where it is a sweep's.
Recovery recover_run(const std::string& run_folder);

}  // namespace basin
