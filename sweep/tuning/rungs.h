// defines: play_rungs(), the tuning runs of a study rung by rung; Tuning, what they came to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runs/folder.h"
#include "sweep/tuning/selection.h"

namespace basin {

struct Tuning {
  std::vector<Cell>
      cells;  // of all rungs; where `complete` is false, stand-ins in the rungs that nobody has entered yet
  bool complete = true;         // all have ended
  std::vector<Trial> trials;    // as many as cells where complete
  std::vector<Choice> choices;  // of the last rung, where complete
};

/// Goes through the rungs in order: `ended` brings the cells of one to their end, or says that they have not
/// ended, and is not asked again then. Who goes on is decided from the runs' files alone, so a tuning that
/// was killed comes to the same choice.
Tuning play_rungs(const Study& study, const SweepPaths& out,
                  const std::function<bool(const std::vector<Cell>& cells)>& ended);

/// Writes OUT/selection.toml and OUT/tune.h5.
void write_tuning(const Tuning& tuning, const Study& study, const SweepPaths& out);

}  // namespace basin
