#include "launch/batch_script.h"

#include <algorithm>

namespace basin {
namespace {

const char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";

constexpr int64_t kLongestNotice = 120;  // seconds before the time limit; states have to be written in them

// sbatch splits a line at blanks unless they stand in double quotes.
std::string directive(const std::string& key, const std::string& value = "") {
  const bool blank = value.find(' ') != std::string::npos;
  const char* const quote = blank ? "\"" : "";
  return fmt::format("#SBATCH --{}{}{}{}{}\n", key, value.empty() ? "" : "=", quote, value, quote);
}

const char kEnd[] = R"(
stop() { kill -TERM $basin; wait $basin; }
requeue() { scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"; }
trap 'stop; requeue; exit 0' USR1   # the time limit is near
trap 'stop; exit 143' TERM          # preempted or cancelled
"${command[@]}" --shard "$SLURM_ARRAY_TASK_ID/$shards" &
basin=$!
wait $basin
status=$?
if [ $status -eq 1 ] && [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then requeue; fi   # a run failed: once more
exit $status
)";

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

std::string batch_script(const BatchJob& job) {
  std::vector<std::string> words;
  for (const std::string& word : job.command) words.push_back(quoted(word));
  std::string text = "#!/bin/bash\n";
  text += directive("job-name", job.name) + directive("array", ranges_of(job.tasks));
  text += directive("output", job.log) + directive("open-mode", "append") + directive("requeue");
  text += directive("ntasks", "1") + directive("cpus-per-task", std::to_string(job.cpus));
  text += directive("time", std::to_string(job.minutes));
  text += directive("signal", fmt::format("B:USR1@{}", std::min(kLongestNotice, 20 * job.minutes)));
  if (!job.after.empty()) text += directive("dependency", "afterany:" + job.after);
  for (const auto& [key, value] : job.given) text += directive(key, value);
  text += fmt::format("\ncommand=({})\nshards={}\n", fmt::join(words, " "), job.shards);
  text += "if [ \"${SLURM_RESTART_COUNT:-0}\" -eq 1 ]; then command+=(--retry failed); fi\n";
  return text + kEnd;
}

}  // namespace basin
