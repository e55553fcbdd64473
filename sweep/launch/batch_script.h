// defines: BatchJob, the job array of a stage; sbatch_arguments() and batch_script(), what sbatch gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/launch/options.h"

namespace basin {

struct BatchJob {
  std::string name;
  std::string folder;                // OUT/slurm, for logs
  std::vector<std::string> command;  // `basin sweep ...` without --shard
  std::vector<int64_t> tasks;        // numbers of the shards, rising
  int64_t shards = 1;                // of the stage
  int64_t minutes = 60;              // time limit of a task
  int64_t cpus = 1;                  // of a task
  std::string after;                 // job that has to end first; empty: none
  bool retry_failed = false;
  SbatchOptions given;  // stand last, where they win
};

/// Arguments win over variables of the user's shell (SBATCH_*), and need no quoting.
std::vector<std::string> sbatch_arguments(const BatchJob& job);

/// A task makes the shard of its number. Near the time limit (sbatch's --signal) it asks Basin to stop, which leaves resumable states,
/// and puts itself, not the whole array, into the queue again, unless nothing was written for the second time in a row. On SIGTERM (preemption, scancel) it stops in the same way; Slurm requeues
/// where it has preempted. Where runs failed it goes into the queue once more and tries these again, perhaps on another node.
std::string batch_script(const BatchJob& job);

/// "1-3,7"
std::string ranges_of(const std::vector<int64_t>& numbers);

/// For a shell: in single quotes where it has to be.
std::string quoted(const std::string& word);

}  // namespace basin
