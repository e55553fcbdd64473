// defines: collect(), sweep.h5 and table.md of a sweep folder, or of several.
#pragma once

#include <string>
#include <vector>

namespace basin {

/// Writes OUT/sweep.h5 and OUT/table.md, atomically, from FOLDER/runs/*/{run.h5,config.toml,status.json,probes} of each folder,
/// whatever of them is there: an unfinished sweep gives a partial table. Returns the text of table.md. IoError where a folder has
/// no runs or two don't go together (merge.h, merge_registration.h); an OUT that is none of the folders also gets the registration.toml
/// of what they claimed, or loses its own where they claimed nothing. ConfigError where OUT is a sweep's own folder and not the only one collected.
std::string collect(const std::vector<std::string>& folders, const std::string& out);
/// One folder, into itself.
std::string collect(const std::string& folder);

}  // namespace basin
