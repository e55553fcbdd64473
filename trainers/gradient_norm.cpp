#include "trainers/gradient_norm.h"

#include "core/math/tensor_norms.h"

namespace basin {

void put_gradient_square(const std::vector<at::Tensor>& gradient, at::Tensor target) {
  if (target.is_cpu()) {
    target.fill_(squared_norm(gradient));
    return;
  }
  target.copy_(at::stack(at::_foreach_norm(gradient, 2, at::kDouble)).square_().sum());
}

double gradient_square(const std::vector<at::Tensor>& gradient) {
  const at::Tensor square = at::empty({}, gradient.front().options().dtype(at::kDouble));
  put_gradient_square(gradient, square);
  return square.item<double>();
}

}  // namespace basin
