// defines: play_rungs(), the tuning runs of a study rung by rung; Tuning, what they came to; tuning_so_far().
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
  size_t rungs_ended = 0;       // all runs of these have ended
  bool complete = true;         // those of all rungs have
  std::vector<Trial> trials;    // as many as cells where complete
  std::vector<Choice> choices;  // of the last rung, where complete
};

/// Goes through the rungs in order: `ended` brings the cells of one to their end, or says that they have not
/// ended, and is not asked again then. Who goes on is decided from the runs' files alone, so a tuning that
/// was killed comes to the same choice.
Tuning play_rungs(const Study& study, const SweepPaths& out,
                  const std::function<bool(const std::vector<Cell>& cells)>& ended);

/// What the files in OUT say, and nothing is run.
Tuning tuning_so_far(const Study& study, const SweepPaths& out);

/// What was chosen; where the tuning is not complete, by group the candidate with the middle learning rate.
Winners known_or_middle(const Tuning& tuning);

/// Whether OUT/selection.toml says this already.
bool is_written(const Tuning& tuning, const Study& study, const SweepPaths& out);

/// Writes OUT/selection.toml and OUT/tune.h5.
void write_tuning(const Tuning& tuning, const Study& study, const SweepPaths& out);

}  // namespace basin
