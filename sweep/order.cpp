#include "sweep/order.h"

#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace basin {
namespace {

/// The setting without its protocol.
std::string lot_of(const Cell& cell) {
  Settings settings = cell.when;
  std::erase_if(settings, [](const auto& setting) { return setting.first == "protocol"; });
  return to_toml(settings);
}

/// Where a cell stands: compared in this order.
struct Place {
  size_t comparison;      // of the seed
  double longest_of_lot;  // negated, so that the longest is the least
  size_t lot;             // tells lots of the same length apart
  double seconds;         // negated
  auto operator<=>(const Place&) const = default;
};

/// The same order with each cell's parents moved before it where they stood behind.
std::vector<size_t> parents_first(const std::vector<Cell>& cells, const std::vector<size_t>& order) {
  const std::vector<std::vector<size_t>> parents = parents_among(cells);
  std::vector<size_t> sorted;
  std::set<size_t> seen;  // before its parents are: a circle, which phases report, ends here
  const std::function<void(size_t)> place = [&](size_t i) {
    if (!seen.insert(i).second) return;
    for (const size_t parent : parents[i]) place(parent);
    sorted.push_back(i);
  };
  for (const size_t i : order) place(i);
  return sorted;
}

}  // namespace

std::vector<std::vector<size_t>> parents_among(const std::vector<Cell>& cells) {
  std::map<std::string, size_t> by_id;
  for (size_t i = 0; i < cells.size(); ++i) by_id.emplace(cells[i].run_id, i);
  std::vector<std::vector<size_t>> parents(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    for (const std::string& parent : cells[i].parents)
      if (const auto found = by_id.find(parent); found != by_id.end()) parents[i].push_back(found->second);
  }
  return parents;
}

std::vector<size_t> running_order(const std::vector<Cell>& cells, const CostModel& costs) {
  std::map<int64_t, size_t> comparisons;  // by seed, in order of appearance
  std::map<std::pair<size_t, std::string>, size_t> lots;
  std::vector<Place> places;
  std::vector<double> longest;  // by lot
  for (const Cell& cell : cells) {
    const size_t comparison = comparisons.emplace(cell.options.train.seed, comparisons.size()).first->second;
    const auto [lot, is_new] = lots.emplace(std::pair(comparison, lot_of(cell)), lots.size());
    if (is_new) longest.push_back(0);
    const double seconds = costs.seconds(cell.run_id);
    longest[lot->second] = std::max(longest[lot->second], seconds);
    places.push_back({comparison, 0, lot->second, -seconds});
  }
  for (Place& place : places) place.longest_of_lot = -longest[place.lot];
  std::vector<size_t> order(cells.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  return parents_first(cells, order);
}

}  // namespace basin
