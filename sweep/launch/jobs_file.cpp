#include "sweep/launch/jobs_file.h"

#include <filesystem>

#include "core/files.h"
#include "core/options.h"
#include "core/toml_file.h"

namespace basin {
namespace {

std::string file_of(const std::string& out) { return slurm_folder(out) + "/jobs.toml"; }

OptionTable table_of(SubmittedJob& job) {
  OptionTable table;
  table.add("cluster", job.cluster, anything(), "");
  table.add("name", job.name, anything(), "");
  table.add("id", job.id, anything(), "");
  table.add("stage", job.stage, anything(), "");
  table.add("tasks", job.tasks, at_least(0), "");
  table.add("submitted_utc", job.submitted_utc, anything(), "");
  return table;
}

}  // namespace

std::string slurm_folder(const std::string& out) { return out + "/slurm"; }

std::vector<SubmittedJob> read_jobs(const std::string& out) {
  std::vector<SubmittedJob> jobs;
  if (!std::filesystem::exists(file_of(out))) return jobs;
  for (const TomlTableArray& array : read_toml(file_of(out)).table_arrays) {
    for (const std::vector<TomlEntry>& entries : array.tables) {
      OptionTable table = table_of(jobs.emplace_back());
      set_all(table, entries);
    }
  }
  return jobs;
}

void write_jobs(const std::string& out, const std::vector<SubmittedJob>& jobs) {
  std::string text;
  for (SubmittedJob job : jobs) text += "[[job]]\n" + table_of(job).to_toml() + "\n";
  make_folders(slurm_folder(out));
  write_file_atomically(file_of(out), text);
}

}  // namespace basin
