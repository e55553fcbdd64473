#include "core/math/kronecker.h"

#include <ATen/ATen.h>

#include <cmath>

namespace basin {
namespace {

at::Tensor product(const KroneckerFactors& factors, at::Tensor x, int64_t summed) {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i].defined()) continue;
    const auto dimension = static_cast<int64_t>(i);
    x = at::tensordot(x, factors[i], {dimension}, {summed}).movedim(-1, dimension);
  }
  return x;
}

at::Tensor slices(const at::Tensor& x, int64_t dimension) {
  return x.movedim(dimension, 0).reshape({x.size(dimension), -1});
}

}  // namespace

at::Tensor kronecker_product(const KroneckerFactors& factors, at::Tensor x) {
  return product(factors, std::move(x), 1);
}

at::Tensor kronecker_transposed_product(const KroneckerFactors& factors, at::Tensor x) {
  return product(factors, std::move(x), 0);
}

at::Tensor gram_along(const at::Tensor& x, int64_t dimension) {
  const at::Tensor rows = slices(x, dimension);
  return at::mm(rows, rows.t());
}

at::Tensor squares_along(const at::Tensor& x, int64_t dimension) {
  return slices(x, dimension).square().sum(1);
}

std::pair<at::Tensor, at::Tensor> symmetric_eigen(const at::Tensor& matrix) {
  const at::Tensor exact = matrix.to(at::kDouble);
  if (!at::isfinite(exact).all().item<bool>())
    return {at::full({exact.size(0)}, NAN, exact.options()), at::full_like(exact, NAN)};
  const auto [values, vectors] = at::linalg_eigh(exact);
  return {values.flip(0), vectors.flip(1)};
}

}  // namespace basin
