// defines: SlurmLaunch, a study as job arrays on a Slurm cluster; LaunchRequest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/launch/arrays.h"
#include "sweep/launch/batch_script.h"
#include "sweep/launch/slurm.h"
#include "sweep/observer.h"
#include "sweep/study_run.h"

namespace basin {

struct LaunchRequest : WorkerRequest {  // of a task
  std::string name;                     // of the study, for the queue
  std::string out;                      // folder of the sweep, on a disk that the nodes share
  std::string program_path;             // of `basin`, on the nodes too
  double task_minutes = 30;
  bool probes = true, retry_failed = false, extend = false;
  std::vector<std::string> sets;  // "runtime.key=value": what a frozen study leaves out
  SbatchOptions given;
};

/// One job array for each stage (sweep/stage.h), each after the one before; a task of it is `basin sweep OUT/study.toml --stage S
/// --shard I/N` in the script of batch_script.h. All about the runs is in OUT, as without Slurm; OUT/slurm has the scripts, the logs and
/// jobs.toml.
class SlurmLaunch {
 public:
  SlurmLaunch(const Study& study, const LaunchRequest& request, SweepObserver& observer);

  /// What submit() would submit if no job were in the queue. `costs` are of all runs of the study.
  std::vector<StageArray> arrays(const CostModel& costs) const;
  /// The job of an array that begins when the job `after` has ended; empty: at once.
  BatchJob job_of(const StageArray& array, const std::string& after) const;

  std::string script_path(const StageArray& array) const;

  /// Submits what is left, unless jobs of an earlier call are still in the queue. ConfigError where there is no Slurm, this is inside a
  /// job, or sbatch refuses; IoError where another call for OUT is at it, or a sweep without Slurm works there.
  void submit();
  /// Shows how the runs stand, by their own files, until the queue has no job of this sweep; collects. On SIGINT and SIGTERM the jobs
  /// go on and Interrupted is thrown.
  StudyOutcome watch();
  /// Takes all jobs of this sweep out of the queue and ends those that run, which leave resumable states.
  void cancel();

 private:
  std::vector<QueuedTask> queued() const;
  void submit(const std::vector<StageArray>& arrays);
  std::string submit(const StageArray& array, const std::string& after);
  void freeze();
  SweepState state_with(const std::vector<QueuedTask>& tasks) const;

  const Study& study_;
  const LaunchRequest& request_;
  SweepObserver& observer_;
  const SweepPaths out_;
  Slurm slurm_;
};

}  // namespace basin
