#include "sweep/plan.h"

#include <functional>
#include <map>

#include "core/error.h"
#include "core/messages.h"
#include "core/progress.h"
#include "data/load.h"
#include "runs/folder.h"
#include "runs/probes_done.h"
#include "sweep/order.h"
#include "sweep/stage.h"
#include "sweep/tuning/rungs.h"
#include "sweep/tuning/selection_file.h"

namespace basin {
namespace {

std::string budget_of(const Study& study, const std::vector<Cell>& tuning) {
  std::map<std::string, std::set<int64_t>> trials;
  for (const Cell& cell : tuning) trials[cell.group].insert(cell.candidate.trial);
  std::vector<size_t> counts;
  for (const auto& [group, numbers] : trials) counts.push_back(numbers.size());
  return counts.empty() ? "" : budget_text(study, counts);
}

// The runs that choose, then the others.
SweepPlan cells_of_study(const Study& study, const SweepPaths& out, const PlanScope& scope) {
  const Tuning tuning = tuning_so_far(study, out);
  SweepPlan plan;
  plan.cells = distinct_runs(tuning.cells);
  if (!plan.cells.empty() && !scope.part.is_whole())
    throw ConfigError(
        "a study that tunes is made in parts stage by stage: --stage 1 --shard I/N, then 2, ...");
  plan.tuning = plan.cells.size();
  plan.winners_known = tuning.complete;
  plan.budget = budget_of(study, tuning.cells);
  plan.probed.assign(plan.tuning, false);
  std::map<std::string, size_t> choosing;  // place by run_id
  for (size_t i = 0; i < plan.tuning; ++i) choosing.emplace(plan.cells[i].run_id, i);
  if (scope.tuning_alone) return plan;
  for (Cell& cell : cells_of(scope.part, expand(study, known_or_middle(tuning)))) {
    const auto tuned = choosing.find(cell.run_id);
    if (tuned == choosing.end()) {
      plan.cells.push_back(std::move(cell));
      plan.probed.push_back(scope.probes);
    } else if (plan.winners_known) {  // a tuning run is probed if it is a winner's
      plan.probed[tuned->second] = scope.probes;
    }
  }
  return plan;
}

SweepPlan cells_of_stage(const Study& study, const SweepPaths& out, const PlanScope& scope) {
  const std::vector<Stage> stages = plan_stages(study, out);
  const size_t wanted = static_cast<size_t>(scope.part.stage);
  if (wanted > stages.size())
    throw ConfigError(fmt::format("--stage {}: the study has {}", wanted, counted(stages.size(), "stage")));
  const Stage& stage = stages[wanted - 1];
  if (!stage.known)
    throw ConfigError(
        fmt::format("--stage {} ({}): the tuning before it has not ended: run the stages before it first",
                    wanted, stage.name));
  SweepPlan plan;
  plan.cells = cells_of(scope.part, stage.cells);
  plan.tuning = stage.tuning ? plan.cells.size() : 0;
  plan.probed.assign(plan.cells.size(), scope.probes && !stage.tuning);
  return plan;
}

Standing standing_by(const RunStatus& status, const Cell& cell, const SweepPaths& out, bool with_probes) {
  if (status.status == RunState::failed) return Standing::failed;
  const std::string folder = out.tuning_folder(cell.run_id);
  const bool trained = is_final(status.status) && std::filesystem::exists(folder + "/run.h5");
  return trained && (!with_probes || probes_done(folder, cell.options)) ? Standing::done : Standing::left;
}

bool is_wanted(Standing standing, bool retry) {
  return standing == Standing::left || (retry && standing == Standing::failed);
}

}  // namespace

Standing standing_of(const Cell& cell, const SweepPaths& out, bool with_probes) {
  return standing_by(status_of(out.tuning_folder(cell.run_id), cell.run_id), cell, out, with_probes);
}

size_t SweepPlan::count(Standing wanted) const {
  return static_cast<size_t>(std::count(standing.begin(), standing.end(), wanted));
}

SweepPlan plan_sweep(const Study& study, const SweepPaths& out, const PlanScope& scope) {
  SweepPlan plan =
      scope.part.stage > 0 ? cells_of_stage(study, out, scope) : cells_of_study(study, out, scope);
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const std::string& run_id = plan.cells[i].run_id;
    plan.status.push_back(status_of(out.tuning_folder(run_id), run_id));
    plan.standing.push_back(standing_by(plan.status[i], plan.cells[i], out, plan.probed[i]));
  }
  return plan;
}

std::vector<size_t> runs_to_come(const SweepPlan& plan, const SweepPaths& out, bool retry) {
  const std::vector<std::vector<size_t>> parents = parents_among(plan.cells);
  const std::function<bool(size_t)> lost = [&](size_t i) {
    if (plan.standing[i] == Standing::done) return false;
    if (plan.standing[i] == Standing::failed && !retry) return true;
    return std::any_of(parents[i].begin(), parents[i].end(), lost);
  };
  std::vector<size_t> to_come;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    if (!is_wanted(plan.standing[i], retry) || lost(i)) continue;
    if (retry || !probes_failed(out.tuning_folder(plan.cells[i].run_id))) to_come.push_back(i);
  }
  return to_come;
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
  for (const Cell& cell : plan.cells) {
    training += costs.seconds(cell.run_id) - costs.probe_seconds(cell.run_id);
    probes += costs.probe_seconds(cell.run_id);
  }
  if (probes <= training) return "";
  return fmt::format(
      "the probes cost more than the training: {} of work against {}; fewer probes.run, probes.at or a "
      "smaller probes.subset cost less",
      format_duration(probes), format_duration(training));
}

double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry) {
  std::vector<Cell> choosing, others;
  std::map<std::string, double> left;  // by run_id
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    if (!is_wanted(plan.standing[i], retry)) continue;
    (i < plan.tuning ? choosing : others).push_back(plan.cells[i]);
    left[plan.cells[i].run_id] = costs.seconds_left(plan.cells[i], plan.status[i]);
  }
  std::vector<double> seconds;
  for (const std::vector<Cell>* cells : {&choosing, &others}) {
    for (const size_t i : running_order(*cells, costs)) seconds.push_back(left.at((*cells)[i].run_id));
  }
  return makespan(seconds, jobs);
}

}  // namespace basin
