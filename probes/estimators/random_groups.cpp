#include "probes/estimators/random_groups.h"

#include <ATen/ATen.h>

#include "core/interrupt.h"
#include "core/seed.h"

namespace basin {

GradientGroups random_gradient_groups(Problem& problem, int64_t group_size, uint64_t seed) {
  const int64_t n = problem.examples();
  at::Generator generator = make_generator(derive_seed(seed, "noise-groups"));
  const at::Tensor order = at::randperm(n, generator, at::kLong);
  GradientGroups gradients;
  gradients.examples = n;
  gradients.group_size = group_size;
  gradients.group = [&problem, order, group_size](int64_t j) {
    throw_if_interrupted();
    return problem.gradient_over(order.narrow(0, j * group_size, group_size));
  };
  gradients.rest = [&problem, order, group_size, n] {
    const int64_t rest = n % group_size;
    return problem.gradient_over(order.narrow(0, n - rest, rest));
  };
  return gradients;
}

}  // namespace basin
