// defines: SubmittedJob and OUT/slurm/jobs.toml, which job arrays were submitted for a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

struct SubmittedJob {
  std::string cluster, name;  // the number alone may be another job's
  std::string id;             // Slurm's number
  std::string stage;          // its name
  int64_t tasks = 0;
  std::string submitted_utc;
};

/// OUT/slurm, which also has the scripts and logs.
std::string slurm_folder(const std::string& out);

/// Empty where none was. IoError or ConfigError where the file can't be read.
std::vector<SubmittedJob> read_jobs(const std::string& out);
/// Atomic, so that a job that was submitted is on record before the next one is.
void write_jobs(const std::string& out, const std::vector<SubmittedJob>& jobs);

}  // namespace basin
