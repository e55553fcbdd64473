// defines: PlannedContrast, what `basin sweep --dry-run` says about a contrast; printing it for people and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/output/json_output.h"
#include "study/contrast_cells.h"
#include "sweep/pilot.h"

namespace basin {

struct PlannedContrast {
  ContrastCells cells;
  bool rates_open = false;               // tuning is still to choose them
  double margin = 0;                     // the smallest of the hypotheses that name it; NaN: none does
  std::optional<EffectVariances> pilot;  // nothing without one, or where it has no such contrast
  int64_t images = 0;                    // test images of this study; 0 without a pilot
  int64_t needed = 0;                    // seeds; 0: more than kMostSeeds, or not known
};

/// `cells` are the study's own and outlive the result; `pilot`: a folder, or empty.
std::vector<PlannedContrast> plan_contrasts(const Study& study, const std::vector<Cell>& cells,
                                            const std::string& pilot);

void print(const std::vector<PlannedContrast>& contrasts);
Json json_of(const std::vector<PlannedContrast>& contrasts);

}  // namespace basin
