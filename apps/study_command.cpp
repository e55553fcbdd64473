#include "apps/study_command.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <thread>

#include "apps/arguments.h"
#include "apps/command_line.h"
#include "apps/output/dry_run.h"
#include "apps/output/json_output.h"
#include "apps/output/launch_plan.h"
#include "apps/output/sweep_display.h"
#include "core/error.h"
#include "core/messages.h"
#include "study/registered.h"
#include "sweep/collect/table_text.h"
#include "sweep/cost_model.h"
#include "sweep/folder.h"
#include "sweep/launch/launch.h"
#include "sweep/registration.h"
#include "sweep/study_run.h"

namespace basin {
namespace {

// On the CPU, one thread per worker unless more are requested, and as many workers as there are cores for
// them: on small networks two one-thread workers beat one run with two threads.
WorkerRequest plan_workers(const StudyArguments& arguments, const RuntimeOptions& runtime) {
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const bool on_gpu = runtime.device.rfind("cuda", 0) == 0 || (runtime.device == "auto" && at::hasCUDA());
  WorkerRequest workers{this_program(), 1, 1, arguments.ranks};
  workers.threads = arguments.threads > 0 ? arguments.threads : std::max<int64_t>(1, runtime.threads);
  workers.jobs = arguments.jobs > 0 ? arguments.jobs
                 : on_gpu || !arguments.launch.empty()
                     ? 1  // this machine's cores aren't the nodes'
                     : std::max<int64_t>(1, cores / (workers.threads * workers.ranks));
  return workers;
}

PlanScope scope_of(const StudyArguments& arguments) {
  StudyPart part = arguments.shard ? parse_shard(*arguments.shard) : StudyPart{};
  part.cell = arguments.cell;
  part.stage = arguments.stage;
  return {!arguments.no_probes && !arguments.tuning_alone, arguments.tuning_alone, part};
}

LaunchRequest launch_request(const StudyArguments& arguments, const WorkerRequest& workers) {
  std::vector<std::string> execution;  // how runs are computed is no part of the study that is frozen in OUT
  std::copy_if(arguments.sets.begin(), arguments.sets.end(), std::back_inserter(execution),
               [](const std::string& set) { return set.rfind("runtime.", 0) == 0; });
  return {workers,
          std::filesystem::path(arguments.study).stem().string(),
          arguments.out,
          std::filesystem::read_symlink("/proc/self/exe").string(),
          arguments.task_minutes,
          !arguments.no_probes,
          !arguments.retry.empty(),
          arguments.extend,
          std::move(execution),
          parse_sbatch_options(arguments.sbatch)};
}

int dry_run(const Study& study, const std::vector<PlannedContrast>& contrasts,
            const StudyArguments& arguments, const WorkerRequest& workers) {
  const SweepPaths out(arguments.out);
  std::optional<LaunchRequest> launch;
  if (!arguments.launch.empty()) launch = launch_request(arguments, workers);
  require_same_claims(out, study, arguments.extend);
  const PlanScope scope = scope_of(arguments);
  const SweepPlan plan = plan_sweep(study, out, scope);
  require_same_data(out, plan.cells);
  CostModel costs(plan.cells, plan.probed);
  for (const std::string& note : costs.notes()) fmt::print(stderr, "note: {}\n", note);
  const bool retry = !arguments.retry.empty();
  if (seconds_left(plan, costs, workers.jobs, retry) > 0) {
    costs.calibrate(workers.program, workers.jobs, workers.threads);
  }
  const double seconds = seconds_left(plan, costs, workers.jobs, retry);
  const std::vector<Claim> claims = claims_of(study.contrasts, study.hypotheses);
  const DryRun found{
      arguments.study, arguments.out, plan,  costs,     workers.jobs,
      workers.threads, seconds,       retry, contrasts, claims.empty() ? "" : registered_hash(claims)};
  if (arguments.json)
    print_json(found);
  else
    print(found);
  if (launch && !arguments.json) {
    SweepDisplay display;
    print(SlurmLaunch(study, *launch, display), plan, costs, workers.cpus());
  }
  return 0;
}

// Reports how it ended; returns the exit code.
int conclude(const StudyArguments& arguments, const StudyOutcome& outcome) {
  fmt::print("{}", arguments.tuning_alone ? outcome.selection : aligned_tables(outcome.table));
  if (outcome.problems.empty() && outcome.file_fault.empty() && outcome.left_to_others > 0) {
    fmt::print(
        "{}: this part is done; left to others: {}; whoever ends the last collects all, or `basin collect "
        "{}`\n",
        arguments.out, counted(outcome.left_to_others, "run"), arguments.out);
    return 0;
  }
  if (outcome.problems.empty() && outcome.file_fault.empty()) {
    fmt::print(
        "{}/{}\n", arguments.out,
        arguments.tuning_alone
            ? "tune.h5 and selection.toml are complete"
            : "sweep.h5 and table.md are complete; for a report: python -m basin.report " + arguments.out);
    return 0;
  }
  fmt::print(stderr, "{} without a result:\n", counted(outcome.problems.size(), "run"));
  for (const std::string& problem : outcome.problems) fmt::print(stderr, "  {}\n", problem);
  fmt::print(stderr, "`--retry failed` runs again those that failed\n");
  if (!outcome.file_fault.empty()) throw IoError(outcome.file_fault);
  return 1;
}

// Submits, watches or cancels; returns the exit code.
int launch_study(const Study& study, const StudyArguments& arguments, const WorkerRequest& workers) {
  const LaunchRequest request = launch_request(arguments, workers);
  SweepDisplay display;
  SlurmLaunch launch(study, request, display);
  if (arguments.cancel) {
    launch.cancel();
    return 0;
  }
  launch.submit();
  if (arguments.detach) return 0;
  const StudyOutcome outcome = launch.watch();
  if (outcome.left_to_others == 0) return conclude(arguments, outcome);
  for (const std::string& problem : outcome.problems) fmt::print(stderr, "  {}\n", problem);
  fmt::print(stderr,
             "{} left, and no job of the sweep in the queue: see {}/slurm/*.log; the same command submits "
             "them again\n",
             counted(outcome.left_to_others, "run"), arguments.out);
  return 1;
}

void require_something_to_tune(const Study& study, const std::string& file) {
  if (!study.selected.empty())
    throw ConfigError(fmt::format("{}: nothing to tune: the study takes the chosen values from {}", file,
                                  study.selected_from));
  if (expand_tuning(study).empty())
    throw ConfigError(file +
                      ": nothing to tune: no run has learning_rate = \"tuned\" or a list to select from");
}

}  // namespace

void add_study_options(CLI::App& command, StudyArguments& arguments) {
  command.add_option("study", arguments.study, "study file (docs/study.md)")->required();
  command.add_option("--out", arguments.out, "folder of the sweep; default: out/<name of the study>");
  command.add_option("--jobs", arguments.jobs, "worker processes; default: one per core, on a GPU one")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--threads", arguments.threads,
                  "threads per worker; default: the study's runtime.threads, or 1")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--ranks", arguments.ranks,
                  "processes that share a run, each with those threads; default 1. Forecasts are of one")
      ->check(CLI::Range(1, 4096));
  CLI::Option* const dry_run =
      command.add_flag("--dry-run", arguments.dry_run, "list the runs with their expected cost and exit");
  add_json_flag(command, arguments.json)->needs(dry_run);
  take_one_of(*command.add_option("--retry", arguments.retry, "which runs to run again: failed"), "state",
              {"failed"});
  CLI::Option* keep_going =
      command.add_flag("--keep-going", arguments.keep_going, "continue after a failed run (the default)");
  command.add_flag("--fail-fast", arguments.fail_fast, "stop at the first failed run")->excludes(keep_going);
  command.add_flag("--extend", arguments.extend,
                   "accept a study with more runs than the folder has, and add them");
  add_set_option(command, arguments.sets);
}

int run_study_command(StudyArguments arguments) {
  at::set_num_threads(1);  // only the workers compute, and a process without threads can be forked
  const Study study = read_study(arguments.study, arguments.sets, arguments.selection);
  if (arguments.tuning_alone) require_something_to_tune(study, arguments.study);
  // The options of every cell are checked before any file is written. [runtime],
  // including --set, holds for the whole sweep.
  const std::vector<Cell> cells = expand(study);
  const std::vector<PlannedContrast> contrasts = plan_contrasts(study, cells, arguments.pilot);
  if (!arguments.tuning_alone) {
    for (const std::string& warning : fairness_warnings(cells)) warn(arguments.study + ": " + warning);
  }
  const WorkerRequest workers = plan_workers(arguments, cells.front().options.runtime);
  if (arguments.out.empty()) arguments.out = "out/" + std::filesystem::path(arguments.study).stem().string();
  if (arguments.dry_run) return dry_run(study, contrasts, arguments, workers);
  if (!arguments.launch.empty()) return launch_study(study, arguments, workers);
  SweepDisplay display;
  const StudyRequest request{
      workers,         arguments.out, scope_of(arguments), !arguments.retry.empty(), arguments.fail_fast,
      arguments.extend};
  return conclude(arguments, run_study(study, request, display));
}

}  // namespace basin
