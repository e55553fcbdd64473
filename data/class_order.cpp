#include "data/class_order.h"

#include "core/error.h"

namespace basin {

void refuse_order_by_class(const Dataset& data, int64_t batch) {
  constexpr double kFewest = 64;
  const at::Tensor& labels = data.train.labels;
  const int64_t n = data.train.size();
  if (labels.dim() != 1 || labels.is_floating_point() || batch >= n) return;
  const auto changes = (labels.narrow(0, 1, n - 1) != labels.narrow(0, 0, n - 1)).sum().item<int64_t>();
  const auto squares = at::bincount(labels).to(at::kDouble).square().sum().item<double>();
  const double expected = static_cast<double>(n) - squares / static_cast<double>(n);
  if (expected < kFewest || static_cast<double>(changes) >= expected / 2) return;
  throw DataError(
      fmt::format("{}: the training examples lie by class (the class changes {} times from one to the next, "
                  "and about {:.0f} "
                  "times in a random order); batch normalisation's statistics are estimated from consecutive "
                  "examples: shuffle the file",
                  data.name, changes, expected));
}

}  // namespace basin
