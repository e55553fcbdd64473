#include "apps/output/scaling_table.h"

#include <map>

#include "core/math/statistics.h"

namespace basin {
namespace {

/// Values by round.
using Rounds = std::vector<double>;

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
  for (const TimedUpdates& timed : found.updates)
    if (timed.scaling != "small")
      images[{timed.optimizer + ", " + timed.scaling, timed.ranks}].push_back(timed.images_per_second());
  for (const TimedProducts& timed : found.products)
    products[{"Hessian products", timed.ranks}].push_back(1 / timed.seconds);
  fmt::print("{:<24} {:>6} {:>23} {:>8} {:>12}\n", "", "ranks", "", "times 1", "efficiency");
  print(images, "images/s");
  print(products, "products/s");
}

}  // namespace basin
