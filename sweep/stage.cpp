#include "sweep/stage.h"

#include "sweep/order.h"
#include "sweep/tuning/rungs.h"

namespace basin {
namespace {

std::vector<Stage> rungs_of(const Study& study, const Tuning& tuning) {
  std::vector<Stage> stages;
  for (const Cell& cell : tuning.cells) {
    if (cell.rung == stages.size()) stages.push_back({"", true, cell.rung <= tuning.rungs_ended, {}});
    stages.back().cells.push_back(cell);
  }
  for (Stage& stage : stages) {
    stage.name =
        fmt::format("tuning, rung {} of {}", &stage - stages.data() + 1, study.tuning.rungs().size());
    stage.cells = distinct_runs(stage.cells);
  }
  return stages;
}

/// By position, how many runs come one after another until this one can begin.
std::vector<size_t> generations_of(const std::vector<Cell>& cells) {
  const std::vector<std::vector<size_t>> parents = parents_among(cells);
  std::vector<size_t> generation(cells.size(), 0);
  // A study has no circles, so this ends, after as many rounds as there are generations.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < cells.size(); ++i) {
      for (const size_t parent : parents[i]) {
        if (generation[i] > generation[parent]) continue;
        generation[i] = generation[parent] + 1;
        changed = true;
      }
    }
  }
  return generation;
}

std::string name_of(size_t generation) {
  if (generation == 0) return "sweep";
  std::string name = "branches";
  for (size_t i = 1; i < generation; ++i) name += " of branches";
  return name;
}

}  // namespace

std::vector<Stage> plan_stages(const Study& study, const SweepPaths& out) {
  const Tuning tuning = tuning_so_far(study, out);
  std::vector<Stage> stages = rungs_of(study, tuning);
  const size_t rungs = stages.size();
  std::vector<Cell> cells = expand(study, known_or_middle(tuning));
  const std::vector<size_t> generation = generations_of(cells);
  for (size_t i = 0; i < cells.size(); ++i) {
    while (stages.size() <= rungs + generation[i])
      stages.push_back({name_of(stages.size() - rungs), false, tuning.complete, {}});
    stages[rungs + generation[i]].cells.push_back(std::move(cells[i]));
  }
  return stages;
}

}  // namespace basin
