// defines: run.h5, written atomically from a RunRecord and read back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/record.h"
#include "io/schema.h"

namespace basin {

/// docs/file-format.md. temp + fsync + rename.
void write_run_file(const std::string& path, const RunRecord& record);
/// IoError for a foreign file, a foreign major version, a truncated file.
RunRecord read_run_file(const std::string& path);
/// `path`, or the run.h5 in it where it is a folder.
std::string run_file_at(const std::string& path);
/// RunHeader::data alone.
std::vector<std::pair<std::string, OptionValue>> read_run_data(const std::string& path);

}  // namespace basin
