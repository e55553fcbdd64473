#include "sweep/tuning/rungs.h"

#include "core/files.h"
#include "sweep/tuning/file.h"
#include "sweep/tuning/selection_file.h"

namespace basin {
namespace {

// Whoever comes first, for a forecast: which ones doesn't change the cost.
Entrants stand_ins(const std::vector<Cell>& cells, int64_t count) {
  Entrants entrants;
  for (const Cell& cell : cells) {
    std::set<int64_t>& trials = entrants[cell.group];
    if (static_cast<int64_t>(trials.size()) < count) trials.insert(cell.candidate.trial);
  }
  return entrants;
}

bool all_ended(const std::vector<Cell>& cells, const SweepPaths& out) {
  return std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
    const RunState status = status_of(out.tuning_folder(cell.run_id), cell.run_id).status;
    return is_final(status) || status == RunState::failed;  // which is a result: the trial isn't chosen
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

}  // namespace

Tuning play_rungs(const Study& study, const SweepPaths& out,
                  const std::function<bool(const std::vector<Cell>& cells)>& ended) {
  Tuning tuning;
  const std::vector<Rung> rungs = study.tuning.rungs();
  Entrants entrants;
  for (size_t rung = 0; study.tuning.enabled && rung < rungs.size(); ++rung) {
    const std::vector<Cell> cells = expand_tuning(study, rung, entrants);
    if (cells.empty()) break;  // every group has one setting: nothing to choose
    tuning.complete = tuning.complete && ended(cells);
    tuning.cells.insert(tuning.cells.end(), cells.begin(), cells.end());
    tuning.rungs_ended += tuning.complete;
    const bool is_last = rung + 1 == rungs.size();
    if (!tuning.complete) {
      if (!is_last) entrants = stand_ins(cells, rungs[rung + 1].trials);
      continue;
    }
    std::vector<Trial> trials;
    for (const Cell& cell : cells) trials.push_back(read_trial(cell, out.tuning_folder(cell.run_id)));
    tuning.choices = choose(trials, study.tuning.options.select);
    if (!is_last) entrants = best_of(tuning.choices, rungs[rung + 1].trials);
    tuning.trials.insert(tuning.trials.end(), trials.begin(), trials.end());
  }
  if (!tuning.complete) tuning.choices.clear();
  return tuning;
}

Tuning tuning_so_far(const Study& study, const SweepPaths& out) {
  return play_rungs(study, out, [&](const std::vector<Cell>& cells) { return all_ended(cells, out); });
}

Winners known_or_middle(const Tuning& tuning) {
  return tuning.complete ? winners_of(tuning.choices) : middle_ones(tuning.cells);
}

bool is_written(const Tuning& tuning, const Study& study, const SweepPaths& out) {
  const std::string file = out.path() + "/selection.toml";
  return std::filesystem::exists(file) && read_file(file) == selection_toml(tuning.choices, study);
}

void write_tuning(const Tuning& tuning, const Study& study, const SweepPaths& out) {
  write_tune_file(out.path() + "/tune.h5", study, tuning.trials);
  write_file_atomically(out.path() + "/selection.toml", selection_toml(tuning.choices, study));
}

}  // namespace basin
