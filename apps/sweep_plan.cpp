#include "apps/sweep_plan.h"

#include "apps/run_cell.h"
#include "apps/selection.h"

namespace basin {
namespace {

// Empty unless every tuning run has ended.
ChosenRates known_rates(const std::vector<Cell>& tuning, const SweepPaths& out) {
  std::vector<RateTrial> trials;
  for (const Cell& cell : tuning) {
    const std::string folder = out.tuning_folder(cell.run_id);
    if (!is_final(status_of(folder, cell.run_id).status)) return {};
    trials.push_back(read_trial(cell, folder));
  }
  return chosen_rates(choose_rates(trials));
}

ChosenRates middle_rates(const std::vector<Cell>& tuning) {
  std::map<std::string, std::set<double>> rates;
  for (const Cell& cell : tuning) rates[cell.group].insert(cell.options.train.learning_rate);
  ChosenRates middle;
  for (const auto& [group, values] : rates) {
    middle[group] = *std::next(values.begin(), static_cast<std::ptrdiff_t>(values.size() / 2));
  }
  return middle;
}

Standing standing_of(const Cell& cell, const SweepPaths& out, bool with_probes) {
  const std::string folder = out.tuning_folder(cell.run_id);
  const std::string status = status_of(folder, cell.run_id).status;
  if (status == "failed") return Standing::failed;
  const bool trained = is_final(status) && std::filesystem::exists(folder + "/run.h5");
  return trained && (!with_probes || probes_done(folder, cell.options)) ? Standing::done : Standing::left;
}

}  // namespace

size_t SweepPlan::count(Standing wanted) const {
  return static_cast<size_t>(std::count(standing.begin(), standing.end(), wanted));
}

SweepPlan plan_sweep(const Study& study, const SweepPaths& out, bool with_probes) {
  SweepPlan plan;
  plan.cells = expand_tuning(study);
  plan.tuning = plan.cells.size();
  const ChosenRates known = known_rates(plan.cells, out);
  plan.rates_known = plan.tuning == 0 || !known.empty();
  std::set<std::string> ids, probed;
  for (const Cell& cell : plan.cells) ids.insert(cell.run_id);
  for (Cell& cell : expand(study, plan.rates_known ? known : middle_rates(plan.cells))) {
    // A tuning run is probed if its rate is the chosen one.
    if (plan.rates_known || !ids.count(cell.run_id)) probed.insert(cell.run_id);
    if (ids.insert(cell.run_id).second) plan.cells.push_back(std::move(cell));
  }
  for (const Cell& cell : plan.cells) {
    plan.standing.push_back(standing_of(cell, out, with_probes && probed.count(cell.run_id)));
  }
  return plan;
}

double seconds_left(const SweepPlan& plan, const CostModel& costs, int64_t jobs, bool retry) {
  std::vector<double> seconds;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const bool wanted = plan.standing[i] == Standing::left || (retry && plan.standing[i] == Standing::failed);
    if (wanted) seconds.push_back(costs.seconds(plan.cells[i].run_id));
  }
  return makespan(seconds, jobs);
}

}  // namespace basin
