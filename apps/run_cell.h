// defines: the hidden subcommands that a sweep runs in worker processes.
#pragma once

#include <string>

#include "apps/probing.h"
#include "apps/run_options.h"
#include "apps/subcommands.h"

namespace basin {

/// `basin run-cell FOLDER [--no-probes]`: trains what FOLDER/cell.toml says, then probes it.
/// `basin time-cell FOLDER BATCH...`: FOLDER/cell.toml's micro-benchmark for the cost model, printed as TOML.
void add_worker_subcommands(CLI::App& app, Action& action);

std::string cell_path(const std::string& folder);
/// FOLDER/cell.toml, every option of the cell, those of execution and probes among them.
void write_cell_file(const std::string& folder, const RunOptions& options);

/// Writes FOLDER/probes/done: a hash of the settings and of the probes' versions, then a line for each file.
void note_probes_done(const std::string& folder, const RunOptions& options, const std::vector<ProbeOutcome>& outcomes);
/// Whether all probes of the plan were done with these settings, their files are still there, and no checkpoint is newer.
bool probes_done(const std::string& folder, const RunOptions& options);

/// Exit code of run-cell where training is final and a probe failed.
inline constexpr int kProbesFailed = 10;

}  // namespace basin
