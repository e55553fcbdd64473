#include "sweep/launch/batch_script.h"

#include <algorithm>

namespace basin {
namespace {

const char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";

constexpr int64_t kLongestNotice = 120;  // seconds before the time limit; states have to be written in them

const char kEnd[] = R"bash(
task="$folder/${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
# A run that failed is tried once more, perhaps on another node: the file says that this task has come back for it.
again="$task.again"
if [ -e "$again" ] && [ ! -s "$again" ]; then retry=(--retry failed); echo tried >"$again"; fi

stop() { trap '' USR1 TERM; kill -TERM $basin; wait $basin; }
requeue() {
  local task="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
  for pause in 2 10 30 0; do scontrol requeue "$task" && return; sleep $pause; done
  echo "scontrol requeue $task failed: submit what is left with the same command" >&2
  exit 1
}
# What takes longer than the time limit and keeps no state, a probe as a rule, would begin again for ever: twice in a row is enough.
# .begun is as old as this attempt.
: >"$task.begun"
anything_written() { [ -n "$(find "$folder/../runs" "$folder/../tuning" -name '*.h5' -newer "$task.begun" -print -quit 2>/dev/null)" ]; }
time_limit() {
  stop
  if anything_written; then rm -f "$task.stuck"; requeue; exit 0; fi
  if [ ! -e "$task.stuck" ]; then : >"$task.stuck"; requeue; exit 0; fi
  echo "nothing was finished within the time limit, twice in a row: a probe may take longer; submit again with --slurm time=..." >&2
  exit 1
}
trap time_limit USR1                # the time limit is near
trap 'stop; exit 143' TERM          # preempted or cancelled
"${command[@]}" --shard "$SLURM_ARRAY_TASK_ID/$shards" "${retry[@]}" &
basin=$!
wait $basin
status=$?
# 1: a run failed; 137: killed, by lack of memory as a rule.
if [ $status -eq 1 -o $status -eq 137 ] && [ ! -e "$again" ]; then : >"$again"; requeue; fi
exit $status
)bash";

// %j and the like would be replaced in the name of a log.
std::string without_patterns(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

// Seconds before the time limit at which a task hears of it; states have to be written in them.
int64_t notice_of(const BatchJob& job) {
  const std::string given = value_of(job.given, "time");
  const int64_t minutes = given.empty() ? job.minutes : minutes_of(given).value_or(job.minutes);
  return std::clamp<int64_t>(20 * minutes, 20, kLongestNotice);
}

}  // namespace

std::string ranges_of(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> sbatch_arguments(const BatchJob& job) {
  std::vector<std::string> words = {"--job-name=" + job.name,
                                    "--array=" + ranges_of(job.tasks),
                                    "--output=" + without_patterns(job.folder) + "/%A_%a.log",
                                    "--open-mode=append",
                                    "--requeue",
                                    "--ntasks=1",
                                    fmt::format("--cpus-per-task={}", job.cpus),
                                    fmt::format("--time={}", job.minutes),
                                    fmt::format("--signal=B:USR1@{}", notice_of(job))};
  if (!job.after.empty()) words.push_back("--dependency=afterany:" + job.after);
  for (const auto& [key, value] : job.given) words.push_back("--" + key + (value.empty() ? "" : "=" + value));
  return words;
}

std::string batch_script(const BatchJob& job) {
  const auto line = [](const std::vector<std::string>& words) {
    std::vector<std::string> all;
    for (const std::string& word : words) all.push_back(quoted(word));
    return fmt::format("{}", fmt::join(all, " "));
  };
  return fmt::format("#!/bin/bash\n# sbatch {}\ncommand=({})\nfolder={}\nshards={}\nretry=({})\n",
                     line(sbatch_arguments(job)), line(job.command), quoted(job.folder), job.shards,
                     job.retry_failed ? "--retry failed" : "") +
         kEnd;
}

}  // namespace basin
