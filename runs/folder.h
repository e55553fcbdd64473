// defines: SweepPaths and what lies where in the folder of a run: cell.toml, status.json, the runs next to it; queue_run().
#pragma once

#include <string>
#include <utility>

#include "core/error.h"
#include "io/status_file.h"
#include "study/study.h"

namespace basin {

/// OUT/runs/<run_id>.
std::string run_folder(const std::string& out, const RunOptions& options);

/// OUT/{study.toml,selection.toml,lock,runs/<run_id>/,tuning/<run_id>/}, there or not. tuning/ holds the runs of learning
/// rates that weren't chosen; a chosen one moves to runs/.
class SweepPaths {
 public:
  explicit SweepPaths(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string run_folder(const std::string& run_id) const { return path_ + "/runs/" + run_id; }
  /// A tuning run that was chosen lies under runs/.
  std::string tuning_folder(const std::string& run_id) const;

 private:
  std::string path_;
};

/// The folder of run `run_id` next to the run's own.
std::string run_next_to(const std::string& run_folder, const std::string& run_id);
/// What is to be said where `path`, of such a run, isn't there: `key` names the run.
IoError untrained(const std::string& path, const std::string& key);
/// IoError where the file there, which is of run `found`, isn't of run `named`.
void require_run(const std::string& path, const std::string& found, const std::string& named,
                 const std::string& key);

std::string cell_path(const std::string& folder);
/// FOLDER/cell.toml, every option of the cell, those of execution and probes among them.
void write_cell_file(const std::string& folder, const RunOptions& options);
/// The options of the study that the run belongs to (RUN/cell.toml), or nothing.
std::optional<RunOptions> study_options(const std::string& run_folder);

/// Whether the folder is a sweep's, not a run's.
bool is_sweep_folder(const std::string& path);
/// OUT/study.toml. IoError where there is none.
std::string frozen_study(const std::string& out);

/// Makes the folder of a run that has none, with config.toml, so that readers see every cell from the beginning. A run that has ended and
/// lost its status.json gets it again.
void queue_run(const std::string& run_folder, const Cell& cell);

}  // namespace basin
