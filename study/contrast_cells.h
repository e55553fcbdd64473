// defines: cells_of_contrasts(), which runs of a study its contrasts compare; ContrastCells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// The runs that conditions pick: one setting, all its seeds.
struct PickedSetting {
  std::string role;  // base | arm, of a recovery small | large | arm
  std::vector<const Cell*> cells;
};

struct ContrastCells {
  const Contrast* contrast = nullptr;
  std::vector<PickedSetting> settings;  // of a difference those of its parts, minuend first
  std::vector<int64_t> paired_seeds;    // that all settings have
  /// Options besides the arm's own in which base and arm differ, as a rule makes them: "learning_rate 0.1 / 0.02".
  std::string also_differs;
};

/// The contrasts in order. `cells` are the study's own, from expand(), and outlive the result. ConfigError with file and line
/// where conditions pick no setting or several, base and arm are the same, an outcome isn't measured in one of the runs, or a
/// level isn't there.
std::vector<ContrastCells> cells_of_contrasts(const Study& study, const std::vector<Cell>& cells);

}  // namespace basin
