#include "probes/common.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/seed.h"

namespace basin {

Quantity named(const QuantityNaming& naming, UncertaintyKind uncertainty_kind) {
  Quantity q;
  q.name = naming.name;
  q.long_name = naming.long_name;
  q.definition = naming.definition;
  q.units = naming.units;
  q.uncertainty_kind = uncertainty_kind;
  return q;
}

std::string short_scientific(double value) {
  std::string text = fmt::format("{:e}", value);  // 5.000000e-04
  const size_t e = text.find('e');
  std::string digits = text.substr(0, e);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return fmt::format("{}e{}", digits, std::stoi(text.substr(e + 1)));
}

ExampleGroups example_groups(int64_t examples, int64_t size, uint64_t seed) {
  ExampleGroups groups;
  groups.size = std::clamp<int64_t>(size, 1, std::max<int64_t>(1, examples / 2));
  at::Generator generator = make_generator(derive_seed(seed, "example-groups"));
  const at::Tensor order = at::randperm(examples, generator, at::kLong);
  for (int64_t first = 0; first + groups.size <= examples; first += groups.size)
    groups.index.push_back(order.narrow(0, first, groups.size));
  return groups;
}

}  // namespace basin
