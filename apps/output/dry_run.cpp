#include "apps/output/dry_run.h"

#include "apps/output/json_output.h"
#include "core/messages.h"
#include "core/progress.h"
#include "study/arms.h"

namespace basin {
namespace {

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

// A column for each option that tells settings apart, with its width.
std::vector<std::pair<std::string, size_t>> arm_columns(const std::vector<Cell>& cells) {
  std::vector<std::pair<std::string, size_t>> columns;
  for (const Cell& cell : cells) {
    for (const auto& [key, value] : cell.arms) {
      const auto known = std::find_if(columns.begin(), columns.end(),
                                      [&, &name = key](const auto& column) { return column.first == name; });
      const size_t width = std::max(key.size(), plain_text(value).size());
      if (known == columns.end())
        columns.emplace_back(key, width);
      else
        known->second = std::max(known->second, width);
    }
  }
  return columns;
}

void print_cells(const SweepPlan& plan, const CostModel& costs) {
  const auto arms = arm_columns(plan.cells);
  std::string heads;
  for (const auto& [key, width] : arms) heads += fmt::format("{:{}} ", key, width);
  size_t seed_width = 4;
  for (const Cell& cell : plan.cells)
    seed_width = std::max(seed_width, std::to_string(cell.options.train.seed).size());
  fmt::print("{:12} {:>6} {:9} {:9} {}{:>{}} {:>9} {:>8} {:>12} {:>10} {:>9}\n", "run_id", "batch",
             "optimizer", "protocol", heads, "seed", seed_width, "rate", "updates", "gradients", "probe",
             "seconds");
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    const TrainOptions& train = cell.options.train;
    const CellWork& work = costs.work(cell.run_id);
    std::string texts;
    for (const auto& [key, width] : arms) texts += fmt::format("{:{}} ", arm_text(cell.arms, key), width);
    fmt::print("{:12} {:>6} {:9} {:9} {}{:>{}} {:>9g} {:>8} {:>11.0f}{} {:>10.0f} {:>9}{}\n", cell.run_id,
               train.batch_size, cell.options.optimizer, train.protocol, texts, train.seed, seed_width,
               train.learning_rate, work.updates, work.gradients,
               work.gradients_expected                 ? '~'
               : train.ends_by(Protocol::matched_loss) ? '<'
                                                       : ' ',
               work.probe_gradients + 2.5 * work.probe_hvps,
               seconds_text(plan.standing[i], costs.seconds_left(cell, plan.status[i])), searched_text(cell));
  }
  fmt::print(
      "gradients: image gradients; < at most (cap of protocol B), ~ as [[sweep.expect]] says\n"
      "probe: what the probes cost in image gradients, a Hessian-vector product counted as 2.5\n");
}

void print_standing(const DryRun& found) {
  const SweepPlan& plan = found.plan;
  const size_t done = plan.count(Standing::done), failed = plan.count(Standing::failed);
  if (done > 0) fmt::print("{} of them are done in {}, not counted in the time\n", done, found.out);
  if (failed == 0) return;
  fmt::print("{} of them failed in {}{}\n", failed, found.out,
             found.retry ? "" : ", counted in the time only with --retry failed");
}

void print_tuning(const SweepPlan& plan) {
  if (plan.tuning == 0) return;
  fmt::print("tuning: {}\n", plan.budget);
  if (plan.tuning == plan.cells.size()) return;
  fmt::print("{} of these runs serve to choose learning rates; the others are listed with the {}\n",
             plan.tuning, plan.winners_known ? "chosen rates" : "middle one of the rates tried");
}

double gradients_of(const DryRun& found) {
  double gradients = 0;
  for (const Cell& cell : found.plan.cells) gradients += found.costs.work(cell.run_id).gradients;
  return gradients;
}

const char* to_string(Standing standing) {
  switch (standing) {
    case Standing::left:
      return "left";
    case Standing::done:
      return "done";
    case Standing::failed:
      return "failed";
  }
  return "";
}

/// What the number of gradients is: what will be, what [[sweep.expect]] says, or the cap of protocol B.
const char* kind_of_gradients(const Cell& cell, const CellWork& work) {
  return work.gradients_expected                              ? "expected"
         : cell.options.train.ends_by(Protocol::matched_loss) ? "at_most"
                                                              : "exact";
}

Json json_of(const SweepPlan& plan, size_t i, const CostModel& costs) {
  const Cell& cell = plan.cells[i];
  const TrainOptions& train = cell.options.train;
  const CellWork& work = costs.work(cell.run_id);
  return {{"run_id", cell.run_id},
          {"label", cell.label},
          {"model", cell.options.model},
          {"optimizer", cell.options.optimizer},
          {"batch_size", train.batch_size},
          {"protocol", train.protocol},
          {"seed", train.seed},
          {"learning_rate", train.learning_rate},
          {"arms", basin::json_of(cell.arms)},
          {"searched", basin::json_of(cell.candidate.settings())},
          {"standing", to_string(plan.standing[i])},
          {"updates", work.updates},
          {"gradients", work.gradients},
          {"gradients_kind", kind_of_gradients(cell, work)},
          {"probe_gradients", work.probe_gradients},
          {"probe_hvps", work.probe_hvps},
          {"expected_seconds", costs.seconds_left(cell, plan.status[i])}};
}

}  // namespace

void print(const DryRun& found) {
  print_cells(found.plan, found.costs);
  print_tuning(found.plan);
  fmt::print("{}, {:.0f} image gradients\n", counted(found.plan.cells.size(), "run"), gradients_of(found));
  print_standing(found);
  print(found.contrasts);
  if (!found.hypotheses_hash.empty()) fmt::print("hash of the hypotheses: {}\n", found.hypotheses_hash);
  if (const std::string warning = probe_cost_warning(found.plan, found.costs); !warning.empty())
    fmt::print("note: {}\n", warning);
  fmt::print("expected wall time with {} of {}: {} ({:.0f} s)\n", counted(found.jobs, "worker"),
             counted(found.threads, "thread"), format_duration(found.seconds), found.seconds);
}

void print_json(const DryRun& found) {
  const SweepPlan& plan = found.plan;
  Json runs = Json::array();
  for (size_t i = 0; i < plan.cells.size(); ++i) runs.push_back(json_of(plan, i, found.costs));
  print_json("dry-run", {{"study", found.study},
                         {"out", found.out},
                         {"jobs", found.jobs},
                         {"threads", found.threads},
                         {"expected_seconds", found.seconds},
                         {"gradients", gradients_of(found)},
                         {"done", plan.count(Standing::done)},
                         {"failed", plan.count(Standing::failed)},
                         {"tuning_runs", plan.tuning},
                         {"tuning_budget", plan.budget},
                         {"winners_known", plan.winners_known},
                         {"notes", found.costs.notes()},
                         {"hypotheses_hash", found.hypotheses_hash},
                         {"contrasts", json_of(found.contrasts)},
                         {"runs", std::move(runs)}});
}

}  // namespace basin
