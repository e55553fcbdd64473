#include "apps/output/scaling_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/math/statistics.h"

namespace basin {
namespace {

/// Values by round.
using Rounds = std::vector<double>;

const OptionValue& entry(const ColumnRow& row, const std::string& column) {
  return std::find_if(row.begin(), row.end(), [&](const auto& e) { return e.first == column; })->second;
}

struct Key {
  std::string what;
  int64_t ranks;
  auto operator<=>(const Key&) const = default;
};

/// One line per key; rates are compared with one rank's of the same round.
void print(const std::map<Key, Rounds>& rates, const std::string& unit) {
  for (const auto& [key, rounds] : rates) {
    const Rounds& alone = rates.at({key.what, 1});
    Rounds ratios;
    for (size_t i = 0; i < rounds.size(); ++i) ratios.push_back(rounds[i] / alone[i]);
    const double times = median(ratios);
    fmt::print("{:<24} {:>6} {:>12.4g} {:<10} {:>8.3g} {:>10.0f} %\n", key.what, key.ranks, median(rounds),
               unit, times, 100 * times / static_cast<double>(key.ranks));
  }
}

}  // namespace

void print_scaling(const RankScaling& found) {
  std::map<Key, Rounds> images, products;
  for (const ColumnRow& row : found.updates) {
    const auto& scaling = std::get<std::string>(entry(row, "scaling"));
    if (scaling == "small") continue;
    images[{std::get<std::string>(entry(row, "optimizer")) + ", " + scaling,
            std::get<int64_t>(entry(row, "ranks"))}]
        .push_back(std::get<double>(entry(row, "images_per_second")));
  }
  for (const ColumnRow& row : found.products)
    products[{"Hessian products", std::get<int64_t>(entry(row, "ranks"))}].push_back(
        1 / std::get<double>(entry(row, "product_seconds")));
  fmt::print("{:<24} {:>6} {:>23} {:>8} {:>12}\n", "", "ranks", "", "times 1", "efficiency");
  print(images, "images/s");
  print(products, "products/s");
}

}  // namespace basin
