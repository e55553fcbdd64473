#include "study/compare.h"

#include "core/hash.h"
#include "study/probe_plan_text.h"

namespace basin {
namespace {

// Everything that decides what the cell runs and measures, in the order of the options.
std::vector<std::pair<std::string, OptionValue>> deciding_options(const Cell& cell) {
  std::vector<std::pair<std::string, OptionValue>> deciding;
  for (const OptionView& view : {cell.options.defining_table(), probe_plan(cell.options)}) {
    for (const Option& option : view)
      if (option.traits.role != OptionRole::execution) deciding.emplace_back(option.key, option.get());
  }
  return deciding;
}

struct Difference {
  size_t keys = 0;    // in how many
  std::string first;  // "updates = 20 there, 7 here"
};

Difference difference_of(const Cell& there, const Cell& here) {
  const auto options = deciding_options(here);
  const std::map<std::string, OptionValue> other(options.begin(), options.end());
  Difference difference;
  for (const auto& [key, value] : deciding_options(there)) {
    const auto found = other.find(key);
    if (found != other.end() && found->second == value) continue;
    if (++difference.keys > 1) continue;
    difference.first = fmt::format("{} = {} there, {} here", key, to_toml(value),
                                   found == other.end() ? "not asked for" : to_toml(found->second));
  }
  return difference;
}

std::string named(const Cell& cell) { return cell.run_id + " (" + cell.label + ")"; }

// The cell as `here` has it, or the nearest of those that `there` doesn't have.
std::string lost_run(const Cell& cell, const std::vector<Cell>& here,
                     const std::set<std::string>& there_ids) {
  Difference nearest;
  for (const Cell& candidate : here) {
    const bool same = candidate.run_id == cell.run_id;
    if (!same && there_ids.count(candidate.run_id)) continue;
    const Difference difference = difference_of(cell, candidate);
    if (same || nearest.first.empty() || difference.keys < nearest.keys) nearest = difference;
    if (same) break;
  }
  if (nearest.first.empty()) return fmt::format("run {} of it is not in this study", named(cell));
  return fmt::format("run {} has {}", named(cell), nearest.first);
}

// What decides the choice besides the candidates, which are cells.
std::string tuning_text(const TuningPlan& tuning) {
  std::string text = "selection seeds " + to_toml(OptionValue(tuning.options.seeds));
  if (tuning.options.select != kByLoss) text += ", by " + tuning.options.select;
  for (const Rung& rung : tuning.rungs()) {
    if (rung.divisor > 1)
      text += fmt::format(", {} trials with 1/{} of the budget", rung.trials, rung.divisor);
  }
  return text;
}

}  // namespace

std::vector<std::string> fingerprints(const Study& study) {
  const std::string tuning = study.tuning.enabled ? tuning_text(study.tuning) : "";
  std::vector<std::string> prints;
  for (const Cell& cell : expand(study)) {
    std::string text = cell.run_id + "\n" + probe_plan_text(cell.options);
    prints.push_back(sha256_hex(text + tuning));
  }
  std::sort(prints.begin(), prints.end());
  return prints;
}

std::string first_difference(const Study& there, const Study& here) {
  const std::vector<Cell> theirs = expand(there), ours = expand(here);
  std::set<std::string> their_ids;
  std::map<std::string, const Cell*> our_cells;
  for (const Cell& cell : theirs) their_ids.insert(cell.run_id);
  for (const Cell& cell : ours) our_cells[cell.run_id] = &cell;
  for (const Cell& cell : theirs) {
    const auto same = our_cells.find(cell.run_id);
    if (same == our_cells.end() || difference_of(cell, *same->second).keys > 0)
      return lost_run(cell, ours, their_ids);
  }
  for (const Cell& cell : ours) {
    if (!their_ids.count(cell.run_id)) return fmt::format("run {} is not in it", named(cell));
  }
  const auto text = [](const Study& study) {
    return study.tuning.enabled ? tuning_text(study.tuning) : "no selection";
  };
  return fmt::format("{} there, {} here", text(there), text(here));
}

}  // namespace basin
