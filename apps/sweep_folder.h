// defines: SweepFolder, OUT of a sweep: whose study it holds, where its runs lie and how they stand.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/study.h"
#include "core/files.h"
#include "io/status_file.h"

namespace basin {

/// OUT/{study.toml,selection.toml,lock,runs/<run_id>/,tuning/<run_id>/}. Locked for this object's life. tuning/ holds the
/// runs of learning rates that weren't chosen; a chosen one moves to runs/.
class SweepFolder {
 public:
  /// Makes the folder. IoError where another sweep works in it.
  explicit SweepFolder(std::string path);

  /// Freezes the study in study.toml, or compares it with the one that is frozen there: ConfigError unless both give the
  /// same runs and probes. With `extend` it may have more runs than the frozen one, never fewer. Runs of something else
  /// under runs/ are left where they are; collect() leaves them out.
  void admit(const Study& study, bool extend);

  const std::string& path() const { return path_; }
  std::string run_folder(const std::string& run_id) const { return path_ + "/runs/" + run_id; }
  /// A tuning run that was chosen lies under runs/.
  std::string tuning_folder(const std::string& run_id) const;
  /// Moves tuning runs between runs/ and tuning/ so that runs/ holds those of `run_ids` alone.
  void keep_chosen(const std::set<std::string>& run_ids, const std::set<std::string>& tuning_ids) const;

 private:
  std::string path_;
  FileLock lock_;
};

/// status.json of a run folder; status "queued" where there is none or it can't be read.
RunStatus status_of(const std::string& run_folder, const std::string& run_id);

/// Makes the folder of a run that has none, with config.toml, so that readers see every cell from the beginning.
void queue_run(const std::string& run_folder, const Cell& cell);

}  // namespace basin
