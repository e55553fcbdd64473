// defines: StudyPart, which runs of a study one process makes where several share them; cells_of(), shard_of_each().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// Shard `index` of `count`, or one cell, both counted from 1, of a study or of one of its stages (sweep/stage.h); as it stands, the
/// whole study.
struct StudyPart {
  int64_t index = 1, count = 1;
  int64_t cell = 0;   // its number in the list of --dry-run; 0: not one alone
  int64_t stage = 0;  // from 1; 0: all

  bool is_whole() const { return count == 1 && cell == 0 && stage == 0; }
};

/// "2/8", at most of 999,999. ConfigError for anything else.
StudyPart parse_shard(const std::string& text);

/// By position, the number of the shard, from 1, that the cell is in. Shards follow from the list alone, whatever has run, so that
/// processes that never speak to one another agree: families (runs that are branches of one another) stay together, and go, the longest
/// first by the round figures of CostModel, to the shard with the least work so far. A shard may be empty.
std::vector<int64_t> shard_of_each(const std::vector<Cell>& cells, int64_t count);

/// The cells of that part among `cells`, those of the study or of the stage, in their order. ConfigError where there is no such cell.
std::vector<Cell> cells_of(const StudyPart& part, std::vector<Cell> cells);

}  // namespace basin
