// defines: print_scaling(), what `basin scaling` measured as a table.
#pragma once

#include "sweep/scaling/measure.h"

namespace basin {

/// A line per optimiser, kind of scaling and number of ranks: medians over rounds.
void print_scaling(const RankScaling& found);

}  // namespace basin
