#include "apps/study_run.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <thread>

#include "apps/arguments.h"
#include "apps/collect.h"
#include "apps/command_line.h"
#include "apps/cost_model.h"
#include "apps/selection_file.h"
#include "apps/sweep_folder.h"
#include "apps/sweep_phase.h"
#include "apps/sweep_plan.h"
#include "apps/tuning.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/progress.h"

namespace basin {
namespace {

constexpr double kWorthCalibrating =
    60;  // seconds of a sweep that make two for a better forecast worth while

struct Workers {
  int64_t jobs = 1, threads = 1;
};

// On CPU one thread a worker unless more are asked for, and as many workers as then have cores of their own:
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

// What a tuning run has beside its rate.
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
               work.gradients_expected ? '~'
               : train.protocol == "B" ? '<'
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
  const double seconds = seconds_left(plan, costs, workers.jobs, retry);
  fmt::print("expected wall time with {} worker(s) of {} thread(s): {} ({:.0f} s)\n", workers.jobs,
             workers.threads, format_duration(seconds), seconds);
  return 0;
}

// One study from its folder to its table.
class StudyRun {
 public:
  StudyRun(const Study& study, const StudyArguments& arguments, const Workers& workers)
      : study_(study),
        arguments_(arguments),
        scope_(scope_of(arguments)),
        workers_(workers),
        folder_(arguments.out) {}

  int run() {
    require_same_study(folder_, study_, arguments_.extend);
    const SweepPlan plan = plan_sweep(study_, folder_, scope_);
    require_same_data(folder_, plan.cells);
    CostModel costs(plan.cells, scope_.probes);
    folder_.freeze(study_);  // a study that was refused until here can be mended
    forecast(plan, costs);
    start_ = Clock::now();
    const Tuning tuning = tune(costs);
    if (stopped_) return conclude();
    if (!scope_.tuning_alone) run_cells_of(tuning, std::move(costs));
    if (problems_.empty()) report_time();
    if (!scope_.tuning_alone) collect_runs();
    return conclude();
  }

 private:
  void forecast(const SweepPlan& plan, CostModel& costs) {
    fmt::print(stderr, "{} runs, {} worker(s) of {} thread(s), results in {}\n", plan.cells.size(),
               workers_.jobs, workers_.threads, folder_.path());
    const auto expected = [&] { return seconds_left(plan, costs, workers_.jobs, !arguments_.retry.empty()); };
    if (expected() > kWorthCalibrating) {
      try {
        costs.calibrate(this_program(), workers_.jobs, workers_.threads);
        calibrated_ = true;
      } catch (const Interrupted&) {
        throw;
      } catch (const Error& error) {
        fmt::print(stderr, "note: no forecast from this machine, round figures stand in: {}\n", error.what());
      }
    }
    expected_ = expected();
  }

  void report_time() const {
    const double measured = seconds_since(start_);
    fmt::print(stderr, "wall time {}; expected {} ({:+.0f} %{})\n", format_duration(measured),
               format_duration(expected_), expected_ > 0 ? 100 * (expected_ / measured - 1) : 0,
               calibrated_ ? "" : "; from round figures, not measured here");
  }

  Tuning tune(const CostModel& costs) {
    const std::vector<Rung> rungs = study_.tuning.rungs();
    size_t rung = 0;
    const auto bring_to_their_end = [&](const std::vector<Cell>& cells) {
      const std::vector<Cell> runs = distinct_runs(cells);
      if (++rung == 1)
        run_phase("tuning", runs, costs, false, true);
      else  // who goes on wasn't known to the forecast
        run_phase(fmt::format("tuning, rung {} of {}", rung, rungs.size()), runs, CostModel(runs, false),
                  false, true);
      return !stopped_;
    };
    const Tuning tuning = play_rungs(study_, folder_, bring_to_their_end);
    if (tuning.choices.empty()) return tuning;
    write_tuning(tuning, study_, folder_);
    fmt::print(scope_.tuning_alone ? stdout : stderr, "{}", selection_table(tuning.choices, study_));
    return tuning;
  }

  void run_cells_of(const Tuning& tuning, CostModel costs) {
    const std::vector<Cell> cells = expand(study_, winners_of(tuning.choices));
    if (!tuning.cells.empty()) {
      costs = CostModel(cells, scope_.probes);
      std::set<std::string> unchosen = ids_of(tuning.cells);
      unchosen.merge(ids_of(expand(study_)));  // of an earlier choice, before --extend
      folder_.keep_chosen(ids_of(cells), unchosen);
    }
    run_phase("sweep", cells, costs, scope_.probes, false);
  }

  void collect_runs() {
    try {
      collect(folder_.path());
    } catch (const IoError& error) {  // the runs that failed are told all the same
      if (file_fault_.empty()) file_fault_ = error.what();
    }
  }

  static std::set<std::string> ids_of(const std::vector<Cell>& cells) {
    std::set<std::string> ids;
    for (const Cell& cell : cells) ids.insert(cell.run_id);
    return ids;
  }

  void run_phase(const std::string& what, const std::vector<Cell>& cells, const CostModel& costs, bool probes,
                 bool tuning) {
    std::vector<PlacedCell> placed;
    for (const Cell& cell : cells) {
      placed.push_back({cell, tuning ? folder_.tuning_folder(cell.run_id) : folder_.run_folder(cell.run_id)});
    }
    PhaseOptions options{what,
                         this_program(),
                         workers_.jobs,
                         workers_.threads,
                         probes,
                         arguments_.fail_fast,
                         !arguments_.retry.empty()};
    const PhaseResult result = run_cells(std::move(placed), costs, options);
    if (result.final_before > 0)
      fmt::print(stderr, "{}: {} runs were done before\n", what, result.final_before);
    problems_.insert(problems_.end(), result.problems.begin(), result.problems.end());
    if (file_fault_.empty()) file_fault_ = result.file_fault;
    stopped_ = arguments_.fail_fast && !result.problems.empty();
  }

  int conclude() const {
    if (problems_.empty() && file_fault_.empty()) {
      fmt::print("{}/{} are complete\n", folder_.path(),
                 scope_.tuning_alone ? "tune.h5 and selection.toml" : "sweep.h5 and table.md");
      return 0;
    }
    fmt::print(stderr, "{} run(s) without a result:\n", problems_.size());
    for (const std::string& problem : problems_) fmt::print(stderr, "  {}\n", problem);
    fmt::print(stderr, "--retry failed runs them again\n");
    if (!file_fault_.empty()) throw IoError(file_fault_);
    return 1;
  }

  const Study& study_;
  const StudyArguments& arguments_;
  PlanScope scope_;
  Workers workers_;
  SweepFolder folder_;
  std::vector<std::string> problems_;
  std::string file_fault_;  // the first file that couldn't be read or written
  bool stopped_ = false, calibrated_ = false;
  double expected_ = 0;  // seconds
  Clock::time_point start_;
};

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

int run_study(StudyArguments arguments) {
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
  return StudyRun(study, arguments, workers).run();
}

}  // namespace basin
