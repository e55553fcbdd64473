// defines: SweepPaths and SweepFolder, OUT of a sweep: whose study it holds, where its runs lie and how they stand.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/study.h"
#include "core/files.h"
#include "io/status_file.h"

namespace basin {

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

/// ConfigError, with the first difference, unless the study that is frozen in study.toml, where there is one, gives the
/// same runs and probes. With `extend` this one may have more runs than the frozen one, never fewer.
void require_same_study(const SweepPaths& out, const Study& study, bool extend);

/// IoError naming run.h5 and both hashes where a run that is done was trained on other data than lies there now. Each data
/// set is read once; where it is gone, what was trained on it stands, and stderr says so.
void require_same_data(const SweepPaths& out, const std::vector<Cell>& cells);

/// The folder made, and locked for this object's life.
class SweepFolder : public SweepPaths {
 public:
  /// IoError where another sweep works in it.
  explicit SweepFolder(const std::string& path);

  /// After require_same_study(): study.toml is this study from now on. Runs of something else under runs/ are left where
  /// they are; collect() leaves them out.
  void freeze(const Study& study);
  /// Moves tuning runs between runs/ and tuning/ so that runs/ holds those of `run_ids` alone.
  void keep_chosen(const std::set<std::string>& run_ids, const std::set<std::string>& tuning_ids) const;

 private:
  FileLock lock_;
};

/// Whether the folder is a sweep's, not a run's.
bool is_sweep_folder(const std::string& path);

/// status.json of a run folder; status "queued" where there is none or it can't be read.
RunStatus status_of(const std::string& run_folder, const std::string& run_id);

/// Makes the folder of a run that has none, with config.toml, so that readers see every cell from the beginning.
void queue_run(const std::string& run_folder, const Cell& cell);

}  // namespace basin
