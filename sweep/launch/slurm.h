// defines: Slurm, its client programs; QueuedTask.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace basin {

/// A task of a job array that has not ended.
struct QueuedTask {
  std::string job;  // of the array
  std::string name;
  std::string state;   // as squeue has it: "PENDING", "RUNNING", ...
  std::string reason;  // why it waits: "Priority", "Dependency", ...
  bool runs() const { return state == "RUNNING"; }
};

/// Calls sbatch, squeue, scancel and scontrol, which read SLURM_CONF and the like. Never sacct: many clusters keep no accounts.
class Slurm {
 public:
  /// ConfigError where there is no sbatch, or where this process is itself part of a job.
  void require() const;

  /// How many tasks a job array may have; where nobody answers, as many as Slurm allows by default.
  int64_t largest_array() const;
  /// Its ClusterName: numbers of jobs are a cluster's own.
  std::string cluster() const;
  /// The most minutes that a job of the partition may ask for, of the default one where it is empty; nothing where there is no limit.
  std::optional<int64_t> longest_minutes(const std::string& partition) const;
  /// The job's number. ConfigError with sbatch's own line where it is refused.
  std::string submit(const std::vector<std::string>& arguments, const std::string& script) const;
  /// What the user has in the queue and isn't ending. IoError where squeue doesn't answer.
  std::vector<QueuedTask> queued() const;
  void cancel(const std::set<std::string>& jobs) const;

 private:
  /// The value in `scontrol show config`, or an empty text.
  std::string configured(const std::string& key) const;

  mutable std::string config_;  // asked for once; empty until the controller has answered
};

}  // namespace basin
