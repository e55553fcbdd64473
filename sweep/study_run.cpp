#include "sweep/study_run.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/messages.h"
#include "core/progress.h"
#include "study/contrast_cells.h"
#include "sweep/collect/collect.h"
#include "sweep/cost_model.h"
#include "sweep/folder.h"
#include "sweep/phase.h"
#include "sweep/registration.h"
#include "sweep/tuning/rungs.h"
#include "sweep/tuning/selection_file.h"

namespace basin {
namespace {

constexpr double kWorthCalibrating =
    60;  // seconds of a sweep that make two for a better forecast worth while

std::string without_line_end(const std::string& text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

class StudyRun {
 public:
  StudyRun(const Study& study, const StudyRequest& request, SweepObserver& observer)
      : study_(study),
        request_(request),
        observer_(observer),
        folder_(request.out, is_part() ? FolderUse::shared : FolderUse::alone) {}

  /// `planned`: where it was made before.
  StudyOutcome run(std::optional<SweepPlan> planned) {
    auto [plan, costs] = begin(std::move(planned));
    forecast(plan, costs);
    start_ = Clock::now();
    if (is_part()) {
      run_part(plan, costs);
    } else {
      const Tuning tuning = tune(costs);
      if (stopped_) return outcome_;
      if (!request_.scope.tuning_alone) run_cells_of(plan, tuning, std::move(costs));
    }
    if (outcome_.problems.empty()) report_time();
    if (!request_.scope.tuning_alone) collect_runs();
    return outcome_;
  }

 private:
  bool is_part() const { return !request_.scope.part.is_whole(); }

  std::pair<SweepPlan, CostModel> begin(std::optional<SweepPlan> planned) {
    const std::optional<FileLock> common = common_lock();
    require_same_claims(folder_, study_, request_.extend);
    const bool was_planned = planned.has_value();
    SweepPlan plan = was_planned ? std::move(*planned) : plan_sweep(study_, folder_, request_.scope);
    if (!was_planned) require_data(plan, request_.retry_failed);
    require_same_data(folder_, plan.cells);
    CostModel costs(plan.cells, plan.probed);
    folder_.freeze(study_);  // a study that was refused until here can be mended
    write_registration(folder_, next_registration(folder_, study_, request_.extend));
    if (is_part()) {
      if (const Tuning tuning = tuning_so_far(study_, folder_); !tuning.choices.empty()) settle(tuning);
      for (const Cell& cell : plan.cells) queue_run(folder_of(cell, plan.tuning > 0), cell);
    }
    return {std::move(plan), std::move(costs)};
  }

  void forecast(const SweepPlan& plan, CostModel& costs) {
    const std::string ranks = request_.ranks > 1 ? counted(request_.ranks, "rank") + " of " : "";
    observer_.announce(fmt::format("{}, {} of {}{}, results in {}", counted(plan.cells.size(), "run"),
                                   counted(request_.jobs, "worker"), ranks,
                                   counted(request_.threads, "thread"), folder_.path()));
    const auto expected = [&] { return seconds_left(plan, costs, request_.jobs, request_.retry_failed); };
    calibrated_ = calibrate_if_worthwhile(costs, expected(), request_, observer_);
    expected_ = expected();
    const std::string warning = expected_ > 0 ? probe_cost_warning(plan, costs) : "";
    if (!warning.empty())
      observer_.announce(fmt::format("note: {}{}", calibrated_ ? "" : "by rough figures ", warning));
  }

  void report_time() const {
    if (expected_ == 0) return;  // nothing was left to run
    const double measured = seconds_since(start_);
    observer_.announce(fmt::format("wall time {}; the forecast was {}{}", format_duration(measured),
                                   format_duration(expected_),
                                   calibrated_ ? "" : ", from rough figures, not measured on this machine"));
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
    outcome_.selection = selection_table(tuning.choices, study_);
    if (!request_.scope.tuning_alone) observer_.announce(without_line_end(outcome_.selection));
    return tuning;
  }

  void run_cells_of(const SweepPlan& plan, const Tuning& tuning, CostModel costs) {
    std::vector<Cell> cells = plan.cells;
    if (!tuning.cells.empty()) {
      cells = move_chosen(tuning);
      costs = CostModel(cells, request_.scope.probes);
    }
    run_phase("sweep", cells, costs, request_.scope.probes, false);
  }

  /// The runs of the sweep, of which those that the tuning made lie where they belong now.
  std::vector<Cell> move_chosen(const Tuning& tuning) const {
    std::vector<Cell> cells = expand(study_, winners_of(tuning.choices));
    std::set<std::string> unchosen = ids_of(tuning.cells);
    unchosen.merge(ids_of(expand(study_)));  // of an earlier choice, before --extend
    folder_.keep_chosen(ids_of(cells), unchosen);
    return cells;
  }

  /// Before a part of a stage after the tuning; every such part calls it, and the first finds something to do.
  void settle(const Tuning& tuning) const {
    if (is_written(tuning, study_, folder_)) return;
    move_chosen(tuning);
    write_tuning(tuning, study_, folder_);
  }

  void run_part(const SweepPlan& plan, const CostModel& costs) {
    const bool tuning = plan.tuning > 0;
    run_phase(tuning ? "tuning" : "sweep", plan.cells, costs, request_.scope.probes && !tuning, tuning);
  }

  void collect_runs() {
    if (is_part()) look_at_the_whole();  // without the lock: a large study takes long
    if (outcome_.left_to_others > 0) return;
    const std::optional<FileLock> common = common_lock();
    try {
      outcome_.table = collect(folder_.path());
    } catch (const IoError& error) {  // the runs that failed are reported all the same
      if (outcome_.file_fault.empty()) outcome_.file_fault = error.what();
    }
  }

  void look_at_the_whole() {
    PlanScope whole = request_.scope;
    whole.part = {};
    const SweepPlan plan = plan_sweep(study_, folder_, whole);
    outcome_.left_to_others = runs_to_come(plan, folder_).size();
    const size_t done = plan.count(Standing::done);
    if (outcome_.left_to_others == 0 && outcome_.problems.empty() && done < plan.cells.size())
      outcome_.problems.push_back(counted(plan.cells.size() - done, "run") + " of other parts: see table.md");
  }

  std::optional<FileLock> common_lock() const {
    return is_part() ? basin::common_lock(folder_.path(), true) : std::nullopt;
  }

  static std::set<std::string> ids_of(const std::vector<Cell>& cells) {
    std::set<std::string> ids;
    for (const Cell& cell : cells) ids.insert(cell.run_id);
    return ids;
  }

  std::string folder_of(const Cell& cell, bool tuning) const {
    return tuning ? folder_.tuning_folder(cell.run_id) : folder_.run_folder(cell.run_id);
  }

  void run_phase(const std::string& what, const std::vector<Cell>& cells, const CostModel& costs, bool probes,
                 bool tuning) {
    std::vector<PlacedCell> placed;
    for (const Cell& cell : cells) placed.push_back({cell, folder_of(cell, tuning)});
    PhaseOptions options{what,
                         request_.program,
                         request_.jobs,
                         request_.threads,
                         request_.ranks,
                         probes,
                         request_.fail_fast,
                         request_.retry_failed,
                         {}};
    if (is_part()) options.claims = folder_.path() + "/claims";
    const PhaseResult result = run_cells(std::move(placed), costs, options, observer_);
    if (result.final_before > 0)
      observer_.announce(fmt::format(
          "{}: {} done before", what,
          result.final_before == 1 ? "1 run was" : fmt::format("{} runs were", result.final_before)));
    outcome_.problems.insert(outcome_.problems.end(), result.problems.begin(), result.problems.end());
    if (outcome_.file_fault.empty()) outcome_.file_fault = result.file_fault;
    stopped_ = request_.fail_fast && !result.problems.empty();
  }

  const Study& study_;
  const StudyRequest& request_;
  SweepObserver& observer_;
  SweepFolder folder_;
  StudyOutcome outcome_;
  bool stopped_ = false, calibrated_ = false;
  double expected_ = 0;  // seconds
  Clock::time_point start_;
};

}  // namespace

bool calibrate_if_worthwhile(CostModel& costs, double seconds, const WorkerRequest& workers,
                             SweepObserver& observer) {
  if (seconds <= kWorthCalibrating) return false;
  try {
    costs.calibrate(workers.program, workers.jobs, workers.threads);
    return true;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    observer.announce(fmt::format(
        "note: no measurements from this machine; the forecast uses rough figures: {}", error.what()));
    return false;
  }
}

StudyOutcome run_study(const Study& study, const StudyRequest& request, SweepObserver& observer) {
  cells_of_contrasts(study, expand(study));
  std::optional<SweepPlan> plan;
  // Another part may be moving what a tuning chose: then it is planned under the lock of all parts.
  if (!study.tuning.enabled || request.scope.part.stage == 0) {
    plan = plan_sweep(study, SweepPaths(request.out), request.scope);
    // A bad path would fail every run in turn: it is said once, and before OUT is taken.
    require_data(*plan, request.retry_failed);
  }
  return StudyRun(study, request, observer).run(std::move(plan));
}

}  // namespace basin
