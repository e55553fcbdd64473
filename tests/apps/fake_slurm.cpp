#include "tests/apps/fake_slurm.h"

#include <cstdlib>
#include <filesystem>

#include "core/files.h"
#include "tests/support/environment.h"
#include "tests/support/text_files.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSbatch = R"(#!/bin/bash
here=$(dirname "$0")
script=${!#}
for word; do
  case $word in
    --array=*) array=${word#--array=} ;;
    --partition=nowhere) echo "a site's greeting
sbatch: error: invalid partition specified: nowhere" >&2; exit 1 ;;
  esac
done
job=$((101 + $(ls "$here" | grep -c '^job-')))
printf '%s\n' "$@" >"$here/job-$job"
for range in $(tr , ' ' <<<"$array"); do
  for task in $(seq "${range%-*}" "${range#*-}"); do
    SLURM_JOB_ID=$job SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task bash "$script" >>"$here/log" 2>&1
  done
done
echo $job
)";
constexpr const char* kSqueue = "#!/bin/bash\ncat \"$(dirname \"$0\")/queue\"\n";
constexpr const char* kScancel = "#!/bin/bash\n: >\"$(dirname \"$0\")/queue\"\n";
constexpr const char* kScontrol = R"(#!/bin/bash
case "$*" in
  "show config") echo 'ClusterName             = fake
MaxArraySize            = 4' ;;
  *partition*) echo 'PartitionName=main AllowGroups=ALL Default=YES MaxTime=00:08:00 State=UP' ;;
  requeue*) echo "$2" >>"$(dirname "$0")/requeued"; kill $PPID ;;
esac
)";

}  // namespace

FakeSlurm::FakeSlurm() : path_before_(environment("PATH")) {
  set_queue("");
  const std::pair<const char*, const char*> programs[] = {
      {"sbatch", kSbatch}, {"squeue", kSqueue}, {"scancel", kScancel}, {"scontrol", kScontrol}};
  for (const auto& [name, text] : programs) {
    write_text(path(name), text);
    fs::permissions(path(name), fs::perms::owner_all);
  }
  ::setenv("PATH", (folder_.path() + ":" + path_before_).c_str(), 1);
}

FakeSlurm::~FakeSlurm() { ::setenv("PATH", path_before_.c_str(), 1); }

std::string FakeSlurm::arguments(int job) const { return read_file(path("job-" + std::to_string(job))); }

int FakeSlurm::submitted() const {
  int count = 0;
  while (fs::exists(path("job-" + std::to_string(101 + count)))) ++count;
  return count;
}

void FakeSlurm::set_queue(const std::string& lines) const { write_text(path("queue"), lines); }

std::string FakeSlurm::queue() const { return read_file(path("queue")); }

void FakeSlurm::lose_queue() const { fs::remove(path("queue")); }

std::string FakeSlurm::requeued() const {
  return fs::exists(path("requeued")) ? read_file(path("requeued")) : "";
}

void FakeSlurm::run_again(const std::string& script, const std::string& job, const std::string& task) const {
  const std::string command = fmt::format(
      "SLURM_ARRAY_JOB_ID={} SLURM_ARRAY_TASK_ID={} bash '{}' >>'{}' 2>&1", job, task, script, path("log"));
  if (std::system(command.c_str()) < 0) throw std::runtime_error("no shell");
}

}  // namespace basin::testing
