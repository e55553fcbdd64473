// defines: FakeSlurm, programs of Slurm's names in PATH that run a job array at once, task by task.
#pragma once

#include <string>

#include "tests/support/temporary_folder.h"

namespace basin::testing {

/// For as long as this lives. `sbatch` runs every task of its script before it returns, as if the cluster were idle; `squeue` knows what
/// FOLDER/queue holds; `scancel` empties that. The real ones are tested by `make test-cluster`.
class FakeSlurm {
 public:
  FakeSlurm();
  ~FakeSlurm();
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;

  /// Scripts that were submitted, the first one's number being 101.
  std::string script(int job) const;
  int submitted() const;
  /// Lines "JOB STATE REASON" of squeue.
  void set_queue(const std::string& lines) const;
  std::string queue() const;

 private:
  std::string path(const std::string& name) const { return folder_ / name; }
  TemporaryFolder folder_;
  std::string path_before_;
};

}  // namespace basin::testing
