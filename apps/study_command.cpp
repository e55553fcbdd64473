#include "apps/study_command.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <thread>

#include "apps/arguments.h"
#include "apps/command_line.h"
#include "apps/sweep_display.h"
#include "core/error.h"
#include "core/progress.h"
#include "sweep/collect/table_text.h"
#include "sweep/cost_model.h"
#include "sweep/folder.h"
#include "sweep/study_run.h"

namespace basin {
namespace {

struct Workers {
  int64_t jobs = 1, threads = 1;
};

// On CPU one thread per worker unless more are asked for, and as many workers as then have cores of their own:
// two one-thread workers beat one two-thread run on small nets.
Workers plan_workers(const StudyArguments& arguments, const RuntimeOptions& runtime) {
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const bool on_gpu = runtime.device.rfind("cuda", 0) == 0 || (runtime.device == "auto" && at::hasCUDA());
  Workers workers;
  workers.threads = arguments.threads > 0 ? arguments.threads : std::max<int64_t>(1, runtime.threads);
  workers.jobs = arguments.jobs > 0 ? arguments.jobs
                 : on_gpu           ? 1
                                    : std::max<int64_t>(1, cores / workers.threads);
  return workers;
}

std::string seconds_text(Standing standing, double seconds) {
  return standing == Standing::done     ? "done"
         : standing == Standing::failed ? "failed"
                                        : fmt::format("{:.1f}", seconds);
}

// What a tuning run has besides its rate.
std::string searched_text(const Cell& cell) {
  Settings others = cell.candidate.settings();
  others.erase(std::remove_if(others.begin(), others.end(), [](const auto& s) { return s.first == kRate; }),
               others.end());
  return others.empty() ? "" : "  " + to_text(others);
}

void print_cells(const SweepPlan& plan, const CostModel& costs) {
  fmt::print("{:12} {:>6} {:9} {:9} {:>4} {:>9} {:>8} {:>12} {:>10} {:>9}\n", "run_id", "batch", "optimizer",
             "protocol", "seed", "rate", "updates", "gradients", "probe", "seconds");
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    const TrainOptions& train = cell.options.train;
    const CellWork& work = costs.work(cell.run_id);
    fmt::print("{:12} {:>6} {:9} {:9} {:>4} {:>9g} {:>8} {:>11.0f}{} {:>10.0f} {:>9}{}\n", cell.run_id,
               train.batch_size, cell.options.optimizer, train.protocol, train.seed, train.learning_rate,
               work.updates, work.gradients,
               work.gradients_expected                 ? '~'
               : train.ends_by(Protocol::matched_loss) ? '<'
                                                       : ' ',
               work.probe_gradients + 2.5 * work.probe_hvps,
               seconds_text(plan.standing[i], costs.seconds(cell.run_id)), searched_text(cell));
  }
  fmt::print(
      "gradients: image gradients; < at most (cap of protocol B), ~ as [[sweep.expect]] says\n"
      "probe: what the probes cost in image gradients, a Hessian-vector product counted as 2.5\n");
}

void print_standing(const SweepPlan& plan, const StudyArguments& arguments) {
  const size_t done = plan.count(Standing::done), failed = plan.count(Standing::failed);
  if (done > 0) fmt::print("{} of them done in {}, not counted in the time\n", done, arguments.out);
  if (failed == 0) return;
  fmt::print("{} of them failed in {}{}\n", failed, arguments.out,
             arguments.retry.empty() ? ", not counted in the time without --retry failed" : "");
}

PlanScope scope_of(const StudyArguments& arguments) {
  return {!arguments.no_probes && !arguments.tuning_alone, arguments.tuning_alone};
}

void print_tuning(const SweepPlan& plan) {
  if (plan.tuning == 0) return;
  fmt::print("tuning: {}\n", plan.budget);
  if (plan.tuning == plan.cells.size()) return;
  fmt::print("{} of these runs choose learning rates; the others are listed with the {}\n", plan.tuning,
             plan.winners_known ? "rates that were chosen" : "middle rate of those that are tried");
}

int dry_run(const Study& study, const StudyArguments& arguments, const Workers& workers) {
  const SweepPaths out(arguments.out);
  require_same_study(out, study, arguments.extend);
  const PlanScope scope = scope_of(arguments);
  const SweepPlan plan = plan_sweep(study, out, scope);
  require_same_data(out, plan.cells);
  CostModel costs(plan.cells, scope.probes);
  for (const std::string& note : costs.notes()) fmt::print(stderr, "note: {}\n", note);
  const bool retry = !arguments.retry.empty();
  if (seconds_left(plan, costs, workers.jobs, retry) > 0) {
    costs.calibrate(this_program(), workers.jobs, workers.threads);
  }
  print_cells(plan, costs);
  double gradients = 0;
  for (const Cell& cell : plan.cells) gradients += costs.work(cell.run_id).gradients;
  print_tuning(plan);
  fmt::print("{} runs, {:.0f} image gradients\n", plan.cells.size(), gradients);
  print_standing(plan, arguments);
  if (const std::string warning = probe_cost_warning(plan, costs); !warning.empty())
    fmt::print("note: {}\n", warning);
  const double seconds = seconds_left(plan, costs, workers.jobs, retry);
  fmt::print("expected wall time with {} worker(s) of {} thread(s): {} ({:.0f} s)\n", workers.jobs,
             workers.threads, format_duration(seconds), seconds);
  return 0;
}

// Says how it ended; the exit code.
int conclude(const StudyArguments& arguments, const StudyOutcome& outcome) {
  fmt::print("{}", arguments.tuning_alone ? outcome.selection : aligned_tables(outcome.table));
  if (outcome.problems.empty() && outcome.file_fault.empty()) {
    fmt::print("{}/{} are complete\n", arguments.out,
               arguments.tuning_alone ? "tune.h5 and selection.toml" : "sweep.h5 and table.md");
    return 0;
  }
  fmt::print(stderr, "{} run(s) without a result:\n", outcome.problems.size());
  for (const std::string& problem : outcome.problems) fmt::print(stderr, "  {}\n", problem);
  fmt::print(stderr, "--retry failed runs them again\n");
  if (!outcome.file_fault.empty()) throw IoError(outcome.file_fault);
  return 1;
}

void require_something_to_tune(const Study& study, const std::string& file) {
  if (!study.selected.empty())
    throw ConfigError(
        fmt::format("{}: nothing to tune: the study takes its values from {}", file, study.selected_from));
  if (expand_tuning(study).empty())
    throw ConfigError(file +
                      ": nothing to tune: no run has learning_rate = \"tuned\" or a list to select from");
}

}  // namespace

void add_study_options(CLI::App& command, StudyArguments& arguments) {
  command.add_option("study", arguments.study, "study file (docs/study.md)")->required();
  command.add_option("--out", arguments.out, "folder of the sweep; default out/<name of the study>");
  command.add_option("--jobs", arguments.jobs, "worker processes; default: as many as cores, on a GPU one")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--threads", arguments.threads,
                  "threads of a worker; default runtime.threads of the study, else 1")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--dry-run", arguments.dry_run, "list the runs with their expected cost and stop");
  command.add_option("--retry", arguments.retry, "run failed runs again")->check(CLI::IsMember({"failed"}));
  CLI::Option* keep_going = command.add_flag("--keep-going", arguments.keep_going,
                                             "a failed run doesn't stop the others (the default)");
  command.add_flag("--fail-fast", arguments.fail_fast, "stop at the first failed run")->excludes(keep_going);
  command.add_flag("--extend", arguments.extend, "the study may have more runs than the folder's");
  add_set_option(command, arguments.sets);
}

int run_study_command(StudyArguments arguments) {
  at::set_num_threads(1);  // the workers compute; a process without threads can be forked into them
  const Study study = read_study(arguments.study, arguments.sets, arguments.selection);
  if (arguments.tuning_alone) require_something_to_tune(study, arguments.study);
  // Every cell's options are checked before anything is made. [runtime] is the whole sweep's, --set among it.
  const std::vector<Cell> cells = expand(study);
  const std::string warning = arguments.tuning_alone ? "" : fairness_warning(cells);
  if (!warning.empty()) fmt::print(stderr, "warning: {}: {}\n", arguments.study, warning);
  const Workers workers = plan_workers(arguments, cells.front().options.runtime);
  if (arguments.out.empty()) arguments.out = "out/" + std::filesystem::path(arguments.study).stem().string();
  if (arguments.dry_run) return dry_run(study, arguments, workers);
  SweepDisplay display;
  const StudyRequest request{arguments.out,       this_program(),      workers.jobs,
                             workers.threads,     scope_of(arguments), !arguments.retry.empty(),
                             arguments.fail_fast, arguments.extend};
  return conclude(arguments, run_study(study, request, display));
}

}  // namespace basin
