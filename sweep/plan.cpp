#include "sweep/plan.h"

#include <functional>

#include "core/error.h"
#include "core/progress.h"
#include "data/load.h"
#include "runs/folder.h"
#include "runs/probes_done.h"
#include "sweep/order.h"
#include "sweep/tuning/rungs.h"
#include "sweep/tuning/selection_file.h"

namespace basin {
namespace {

bool all_ended(const std::vector<Cell>& cells, const SweepPaths& out) {
  return std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
    return is_final(status_of(out.tuning_folder(cell.run_id), cell.run_id).status);
  });
}

// By group, the candidate with the middle learning rate.
Winners middle_ones(const std::vector<Cell>& tuning) {
  std::map<std::string, std::map<double, Settings>> by_rate;
  for (const Cell& cell : tuning) by_rate[cell.group][cell.candidate.rate()] = cell.candidate.settings();
  Winners middle;
  for (const auto& [group, candidates] : by_rate)
    middle[group] = std::next(candidates.begin(), static_cast<std::ptrdiff_t>(candidates.size() / 2))->second;
  return middle;
}

std::string budget_of(const Study& study, const std::vector<Cell>& tuning) {
  std::map<std::string, std::set<int64_t>> trials;
  for (const Cell& cell : tuning) trials[cell.group].insert(cell.candidate.trial);
  std::vector<size_t> counts;
  for (const auto& [group, numbers] : trials) counts.push_back(numbers.size());
  return counts.empty() ? "" : budget_text(study, counts);
}

Standing standing_of(const Cell& cell, const SweepPaths& out, bool with_probes) {
  const std::string folder = out.tuning_folder(cell.run_id);
  const RunState status = status_of(folder, cell.run_id).status;
  if (status == RunState::failed) return Standing::failed;
  const bool trained = is_final(status) && std::filesystem::exists(folder + "/run.h5");
  return trained && (!with_probes || probes_done(folder, cell.options)) ? Standing::done : Standing::left;
}

bool is_wanted(Standing standing, bool retry) {
  return standing == Standing::left || (retry && standing == Standing::failed);
}

}  // namespace

size_t SweepPlan::count(Standing wanted) const {
  return static_cast<size_t>(std::count(standing.begin(), standing.end(), wanted));
}

SweepPlan plan_sweep(const Study& study, const SweepPaths& out, const PlanScope& scope) {
  const Tuning tuning =
      play_rungs(study, out, [&](const std::vector<Cell>& cells) { return all_ended(cells, out); });
  SweepPlan plan;
  plan.cells = distinct_runs(tuning.cells);
  plan.tuning = plan.cells.size();
  plan.winners_known = tuning.complete;
  plan.budget = budget_of(study, tuning.cells);
  std::set<std::string> ids, probed;
  for (const Cell& cell : plan.cells) ids.insert(cell.run_id);
  const Winners winners = tuning.complete ? winners_of(tuning.choices) : middle_ones(tuning.cells);
  if (!plan.cells.empty() && !scope.part.is_whole())
    throw ConfigError(
        "a study that tunes isn't run in parts: `basin tune` first, then --selection with its "
        "selection.toml");
  for (Cell& cell : scope.tuning_alone ? std::vector<Cell>{} : cells_of(scope.part, expand(study, winners))) {
    // A tuning run is probed if it is a winner's.
    if (plan.winners_known || !ids.count(cell.run_id)) probed.insert(cell.run_id);
    if (ids.insert(cell.run_id).second) plan.cells.push_back(std::move(cell));
  }
  for (const Cell& cell : plan.cells) {
    plan.probed.push_back(scope.probes && probed.count(cell.run_id));
    plan.standing.push_back(standing_of(cell, out, plan.probed.back()));
  }
  return plan;
}

size_t runs_to_come(const SweepPlan& plan, const SweepPaths& out) {
  const std::vector<std::vector<size_t>> parents = parents_among(plan.cells);
  const std::function<bool(size_t)> lost = [&](size_t i) {
    if (plan.standing[i] != Standing::left) return plan.standing[i] == Standing::failed;
    return std::any_of(parents[i].begin(), parents[i].end(), lost);
  };
  size_t count = 0;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    count += plan.standing[i] == Standing::left && !lost(i) &&
             !probes_failed(out.tuning_folder(plan.cells[i].run_id));
  }
  return count;
}

void require_data(const SweepPlan& plan, bool retry) {
  std::set<std::string> known;  // options that choose the data
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const DataOptions& data = plan.cells[i].options.data;
    if (is_wanted(plan.standing[i], retry) && known.insert(view_of(data).to_toml()).second)
      load_dataset(data);
  }
}

std::string probe_cost_warning(const SweepPlan& plan, const CostModel& costs) {
  double training = 0, probes = 0;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const std::string& run_id = plan.cells[i].run_id;
    training += costs.seconds(run_id) - costs.probe_seconds(run_id);
    if (plan.probed[i]) probes += costs.probe_seconds(run_id);
  }
  if (probes <= training) return "";
  return fmt::format(
      "the probes cost more than the training: {} of work against {}; fewer probes.run, probes.at or a "
      "smaller probes.subset cost less",
      format_duration(probes), format_duration(training));
}

double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry) {
  std::vector<Cell> choosing, others;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    if (is_wanted(plan.standing[i], retry)) (i < plan.tuning ? choosing : others).push_back(plan.cells[i]);
  }
  std::vector<double> seconds;
  for (const std::vector<Cell>* cells : {&choosing, &others}) {
    for (const size_t i : running_order(*cells, costs)) seconds.push_back(costs.seconds((*cells)[i].run_id));
  }
  return makespan(seconds, jobs);
}

}  // namespace basin
