#include "sweep/launch/slurm.h"

#include <cstdlib>
#include <regex>
#include <sstream>

#include "core/error.h"
#include "sweep/launch/command.h"
#include "sweep/launch/options.h"

namespace basin {
namespace {

constexpr int64_t kUsualLargestArray = 1000;  // MaxArraySize is 1001 unless slurm.conf says otherwise

// "sbatch: error: invalid partition specified: nope" without the names. A site's own programs may say other things before it.
std::string complaint_of(const CommandResult& result, const std::string& program) {
  std::istringstream lines(result.err);
  std::string complaint;
  for (std::string line; std::getline(lines, line);) {
    const bool is_error =
        line.find("error: ") != std::string::npos || line.find("fatal: ") != std::string::npos;
    if (complaint.empty() || is_error)
      complaint = std::regex_replace(line, std::regex("^" + program + ": ((error|fatal): )?"), "");
    if (is_error) break;
  }
  return complaint.empty() ? fmt::format("exit code {}", result.exit_code) : complaint;
}

}  // namespace

void Slurm::require() const {
  if (const char* const job = std::getenv("SLURM_JOB_ID"))
    throw ConfigError(fmt::format(
        "--launch slurm: this is inside job {} already: start it from a login node, or leave --launch away",
        job));
  if (!find_program("sbatch")) throw ConfigError("--launch slurm: there is no sbatch in PATH");
}

std::string Slurm::configured(const std::string& key) const {
  if (config_.empty() && find_program("scontrol")) {
    const CommandResult result = run_command({"scontrol", "show", "config"});
    if (result.ok()) config_ = result.out;
  }
  std::smatch found;
  return std::regex_search(config_, found, std::regex("(?:^|\\n)" + key + " *= *([^ \\n]+)")) ? found[1].str()
                                                                                              : "";
}

int64_t Slurm::largest_array() const {
  const std::string size = configured("MaxArraySize");
  if (size.empty()) return kUsualLargestArray;
  return std::max<int64_t>(1,
                           std::atoll(size.c_str()) - 1);  // an index has to be below it, and ours begin at 1
}

std::string Slurm::cluster() const { return configured("ClusterName"); }

std::optional<int64_t> Slurm::longest_minutes(const std::string& partition) const {
  if (!find_program("scontrol")) return std::nullopt;
  const CommandResult result = run_command({"scontrol", "--oneliner", "--all", "show", "partition"});
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const bool is_it = partition.empty() ? line.find(" Default=YES ") != std::string::npos
                                         : line.rfind("PartitionName=" + partition + " ", 0) == 0;
    std::smatch found;
    if (is_it && std::regex_search(line, found, std::regex(" MaxTime=([^ ]+)"))) return minutes_of(found[1]);
  }
  return std::nullopt;
}

std::string Slurm::submit(const std::vector<std::string>& arguments, const std::string& script) const {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(script);
  const CommandResult result = run_command(words);
  std::smatch found;
  if (!result.ok() || !std::regex_search(result.out, found, std::regex("(?:^|\n)([0-9]+)(?:;[^\n]*)?\n*$")))
    throw ConfigError(fmt::format("{}: sbatch: {}", script, complaint_of(result, "sbatch")));
  return found[1];
}

std::vector<QueuedTask> Slurm::queued() const {
  const CommandResult result =
      run_command({"squeue", "--noheader", "--array", "--all", "--me", "--format=%F|%T|%r|%j"});
  if (!result.ok()) throw IoError("squeue: " + complaint_of(result, "squeue"));
  std::vector<QueuedTask> tasks;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    QueuedTask task;
    std::getline(fields, task.job, '|');
    std::getline(fields, task.state, '|');
    std::getline(fields, task.reason, '|');
    std::getline(fields, task.name);
    if (task.state != "COMPLETING") tasks.push_back(task);
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
