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

  /// What sbatch got, a line for each argument; the first job's number is 101.
  std::string arguments(int job) const;
  int submitted() const;
  /// Lines "JOB|STATE|REASON|NAME" of squeue.
  void set_queue(const std::string& lines) const;
  std::string queue() const;
  /// From here on squeue fails.
  void lose_queue() const;
  /// JOB_TASK of each `scontrol requeue`, which ends the script that called it.
  std::string requeued() const;
  /// Starts a task's script.
  void run_again(const std::string& script, const std::string& job, const std::string& task) const;

 private:
  std::string path(const std::string& name) const { return folder_ / name; }
  TemporaryFolder folder_;
  std::string path_before_;
};

}  // namespace basin::testing
