// defines: stored_numbers(), all that a study left on disk and that a second, disturbed study must leave bit for bit.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace basin::testing {

/// By file and object ("runs/0123/ckpt/end.h5:/optimizer/momentum/fc.weight"): every dataset's type, shape and bytes and
/// every attribute of every HDF5 file, status.json's numbers, and the text files whole. Left out: times, pids, hosts,
/// command lines; what those shift (journal_offset); the journal and run.log, which hold them; latest.h5 and previous.h5,
/// which are written by the clock.
std::map<std::string, std::string> stored_numbers(const std::string& folder);

/// Names that only one has or that differ.
std::vector<std::string> differences(const std::map<std::string, std::string>& a,
                                     const std::map<std::string, std::string>& b);

}  // namespace basin::testing
