#include "sweep/part.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <regex>

#include "core/error.h"
#include "core/messages.h"
#include "sweep/cost_model.h"
#include "sweep/order.h"

namespace basin {
namespace {

/// Runs that need one another, and what they cost together.
struct Family {
  std::vector<size_t> members;
  double seconds = 0;
};

/// By position, the first member of the family that the cell belongs to.
std::vector<size_t> families_by_first(const std::vector<Cell>& cells) {
  const std::vector<std::vector<size_t>> parents = parents_among(cells);
  std::vector<size_t> first(cells.size());
  std::iota(first.begin(), first.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (first[i] != i) i = first[i];
    return i;
  };
  for (size_t i = 0; i < cells.size(); ++i) {
    for (const size_t parent : parents[i]) {
      const auto [low, high] = std::minmax({root(i), root(parent)});
      first[high] = low;
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) first[i] = root(i);
  return first;
}

/// In the order of the list.
std::vector<Family> families_of(const std::vector<Cell>& cells, const CostModel& costs) {
  const std::vector<size_t> first = families_by_first(cells);
  std::map<size_t, Family> families;
  for (size_t i = 0; i < cells.size(); ++i) {
    families[first[i]].members.push_back(i);
    // Whole milliseconds: on another host a sum may end in another bit.
    families[first[i]].seconds += std::round(1e3 * costs.seconds(cells[i].run_id)) / 1e3;
  }
  std::vector<Family> listed;
  for (auto& [_, family] : families) listed.push_back(std::move(family));
  return listed;
}

}  // namespace

StudyPart parse_shard(const std::string& text) {
  std::smatch found;
  StudyPart part;
  if (std::regex_match(text, found, std::regex("([0-9]{1,6})/([0-9]{1,6})"))) {
    part.index = std::stoll(found[1]);
    part.count = std::stoll(found[2]);
    if (part.index >= 1 && part.index <= part.count) return part;
  }
  throw ConfigError(fmt::format("--shard {}: not I/N with 1 <= I <= N", text));
}

std::vector<int64_t> shard_of_each(const std::vector<Cell>& cells, int64_t count) {
  std::vector<Family> families = families_of(cells, CostModel(cells, true));
  std::stable_sort(families.begin(), families.end(),
                   [](const Family& a, const Family& b) { return a.seconds > b.seconds; });
  std::vector<double> load(static_cast<size_t>(count), 0);
  std::vector<int64_t> shard(cells.size());
  for (const Family& family : families) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += family.seconds;
    for (const size_t i : family.members) shard[i] = least - load.begin() + 1;
  }
  return shard;
}

std::vector<Cell> cells_of(const StudyPart& part, std::vector<Cell> cells) {
  if (part.count == 1 && part.cell == 0) return cells;
  if (part.cell > static_cast<int64_t>(cells.size()))
    throw ConfigError(fmt::format("--cell {}: the study has {}", part.cell, counted(cells.size(), "run")));
  if (part.cell > 0) return {cells[static_cast<size_t>(part.cell - 1)]};
  std::vector<Cell> mine;
  const std::vector<int64_t> shard = shard_of_each(cells, part.count);
  for (size_t i = 0; i < cells.size(); ++i)
    if (shard[i] == part.index) mine.push_back(std::move(cells[i]));
  return mine;
}

}  // namespace basin
