// defines: SweepFolder, OUT of a sweep: whose study it holds, who works in it; require_same_study() and require_same_data().
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/file_lock.h"
#include "runs/folder.h"
#include "study/study.h"

namespace basin {

/// ConfigError, with the first difference, unless the study that is frozen in study.toml, where there is one, gives the
/// same runs and probes. With `extend` this one may have more runs than the frozen one, never fewer.
void require_same_study(const SweepPaths& out, const Study& study, bool extend);

/// IoError naming run.h5 and both hashes where a run that is done was trained on other data than lies there now. Each data
/// set is read once; where it is gone, what was trained on it stands, and stderr says so.
void require_same_data(const SweepPaths& out, const std::vector<Cell>& cells);

/// Held while what the parts of a study share is read and written: study.toml, registration.toml, queued runs, sweep.h5. Waits for
/// it; Interrupted after SIGINT or SIGTERM. Nothing in a folder that no part has worked in, unless `make`.
std::optional<FileLock> common_lock(const std::string& path, bool make);

/// Whether other sweeps may work in the folder at the same time, on other parts of the study.
enum class FolderUse { alone, shared };

/// The folder made, and locked for this object's life.
class SweepFolder : public SweepPaths {
 public:
  /// IoError where another sweep works in it that doesn't share it, or this one doesn't.
  SweepFolder(const std::string& path, FolderUse use);

  /// After require_same_study(): study.toml is this study from now on. Runs of something else under runs/ are left where
  /// they are; collect() leaves them out.
  void freeze(const Study& study);
  /// Moves tuning runs between runs/ and tuning/ so that runs/ holds those of `run_ids` alone.
  void keep_chosen(const std::set<std::string>& run_ids, const std::set<std::string>& tuning_ids) const;

 private:
  FileLock lock_;
};

}  // namespace basin
