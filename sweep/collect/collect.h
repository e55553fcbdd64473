// defines: collect(), a sweep folder's sweep.h5 and table.md.
#pragma once

#include <string>

namespace basin {

/// Writes DIR/sweep.h5 and DIR/table.md, atomically, from runs/*/{run.h5,config.toml,status.json,probes},
/// whatever of them is there: an unfinished sweep gives a partial table. IoError where the folder has no
/// runs.
void collect(const std::string& sweep_folder);

}  // namespace basin
