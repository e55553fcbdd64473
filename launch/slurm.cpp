#include "launch/slurm.h"

#include <cstdlib>
#include <regex>
#include <sstream>

#include "core/error.h"
#include "launch/command.h"

namespace basin {
namespace {

constexpr int64_t kUsualLargestArray = 1000;  // MaxArraySize is 1001 unless slurm.conf says otherwise

// "sbatch: error: invalid partition specified: nope" without the names.
std::string complaint_of(const CommandResult& result, const std::string& program) {
  std::istringstream lines(result.err);
  std::string first;
  while (first.empty() && std::getline(lines, first))
    first = std::regex_replace(first, std::regex("^" + program + ": (error: )?"), "");
  return first.empty() ? fmt::format("exit code {}", result.exit_code) : first;
}

}  // namespace

void Slurm::require() const {
  if (const char* const job = std::getenv("SLURM_JOB_ID"))
    throw ConfigError(fmt::format(
        "--launch slurm: this is inside job {} already: start it from a login node, or leave --launch away",
        job));
  if (!find_program("sbatch")) throw ConfigError("--launch slurm: there is no sbatch in PATH");
}

int64_t Slurm::largest_array() const {
  if (!find_program("scontrol")) return kUsualLargestArray;
  const CommandResult result = run_command({"scontrol", "show", "config"});
  std::smatch found;
  if (!result.ok() || !std::regex_search(result.out, found, std::regex("MaxArraySize *= *([0-9]{1,9})")))
    return kUsualLargestArray;
  return std::max<int64_t>(1, std::stoll(found[1]) - 1);  // an index has to be below it, and ours begin at 1
}

std::string Slurm::submit(const std::string& script) const {
  const CommandResult result = run_command({"sbatch", "--parsable", script});
  std::smatch found;
  if (!result.ok() || !std::regex_search(result.out, found, std::regex("^([0-9]+)")))
    throw ConfigError(fmt::format("{}: sbatch: {}", script, complaint_of(result, "sbatch")));
  return found[1];
}

std::vector<QueuedTask> Slurm::queued(const std::set<std::string>& jobs) const {
  // Not --jobs: a job that has been forgotten is an error there.
  const CommandResult result = run_command({"squeue", "--noheader", "--array", "--me", "--format=%F %T %r"});
  if (!result.ok()) throw IoError("squeue: " + complaint_of(result, "squeue"));
  std::vector<QueuedTask> tasks;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    QueuedTask task;
    words >> task.job >> task.state >> task.reason;
    if (jobs.count(task.job)) tasks.push_back(task);
  }
  return tasks;
}

void Slurm::cancel(const std::set<std::string>& jobs) const {
  std::vector<std::string> arguments = {"scancel"};
  arguments.insert(arguments.end(), jobs.begin(), jobs.end());
  const CommandResult result = run_command(arguments);
  if (!result.ok()) throw IoError("scancel: " + complaint_of(result, "scancel"));
}

}  // namespace basin
