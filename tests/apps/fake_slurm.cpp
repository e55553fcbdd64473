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
if grep -q '^#SBATCH --partition=nowhere$' "$script"; then
  echo "sbatch: error: invalid partition specified: nowhere" >&2
  exit 1
fi
job=$((101 + $(ls "$here" | grep -c '^job-')))
cp "$script" "$here/job-$job"
for range in $(sed -n 's/^#SBATCH --array=//p' "$script" | tr , ' '); do
  for task in $(seq "${range%-*}" "${range#*-}"); do
    SLURM_JOB_ID=$job SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task bash "$script" >>"$here/log" 2>&1
  done
done
echo $job
)";
constexpr const char* kSqueue = "#!/bin/bash\ncat \"$(dirname \"$0\")/queue\"\n";
constexpr const char* kScancel = "#!/bin/bash\n: >\"$(dirname \"$0\")/queue\"\n";
constexpr const char* kScontrol = "#!/bin/bash\necho 'MaxArraySize            = 4'\n";

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

std::string FakeSlurm::script(int job) const { return read_file(path("job-" + std::to_string(job))); }

int FakeSlurm::submitted() const {
  int count = 0;
  while (fs::exists(path("job-" + std::to_string(101 + count)))) ++count;
  return count;
}

void FakeSlurm::set_queue(const std::string& lines) const { write_text(path("queue"), lines); }

std::string FakeSlurm::queue() const { return read_file(path("queue")); }

}  // namespace basin::testing
