// defines: collect_provenance(), who made a number, with what, where.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace basin {

/// git_commit, git_dirty, argv, cwd, host, user, pid, compiler, flags, versions of torch/Eigen/Spectra/HDF5, cuda, cudnn, gpu, driver,
/// threads, tf32, deterministic, started_utc. Commit and dirty flag are those of the build.
using Provenance = std::vector<std::pair<std::string, std::string>>;

/// Called once at start with main's arguments.
void remember_command_line(int argc, char** argv);
Provenance collect_provenance();
std::string utc_now();  // 2026-11-21T14:03:22Z

}  // namespace basin
