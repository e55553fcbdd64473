// defines: collect_provenance(), which records who made a number, where and with what.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace basin {

/// git_commit, git_dirty, argv, cwd, host, user, pid, compiler, flags, libtorch, libraries (versions of Eigen, Spectra, HDF5),
/// cuda, cudnn, gpu, driver ("none" where there is none), num_threads, tf32, deterministic, started_utc (of the process).
/// Commit and dirty flag are those of the build. Files add ended_utc when what they record has ended.
using Provenance = std::vector<std::pair<std::string, std::string>>;

/// Called once at start with main's arguments.
void remember_command_line(int argc, char** argv);
const std::vector<std::string>& command_line();
/// As it stands now: threads, TF32 and determinism are read from the library.
Provenance collect_provenance();
std::string host_name();
std::string utc_now();  // 2026-11-21T14:03:22Z
/// Since a time in that form, by this host's clock; NaN where it isn't one.
double seconds_since_utc(const std::string& text);

}  // namespace basin
