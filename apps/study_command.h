// defines: run_study_command(), what `basin sweep` and `basin tune` do with a study; StudyArguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace basin {

struct StudyArguments {
  std::string study, out, retry, selection, pilot, launch;
  std::optional<std::string> shard;
  std::vector<std::string> sets, sbatch;
  int64_t jobs = 0, threads = 0, ranks = 1, cell = 0, stage = 0;
  double task_minutes = 30;  // of a launch
  bool detach = false, cancel = false;
  bool dry_run = false, json = false, keep_going = false, fail_fast = false, no_probes = false,
       extend = false;
  bool tuning_alone = false;  // `basin tune`
};

/// Adds what both share: the study, --out, --jobs, --threads, --dry-run, --json, --retry, --keep-going, --fail-fast,
/// --extend, --set.
void add_study_options(CLI::App& command, StudyArguments& arguments);

/// Runs the study, or prints what --dry-run says about it; returns the exit code.
int run_study_command(StudyArguments arguments);

}  // namespace basin
