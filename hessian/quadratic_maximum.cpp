#include "hessian/quadratic_maximum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/interrupt.h"
#include "core/math/tensor_norms.h"

namespace basin {

QuadraticMaximum maximise_quadratic(LinearOperator& a,
                                    const std::function<at::Tensor(const at::Tensor&)>& farthest,
                                    const at::Tensor& start, const QuadraticSearch& search) {
  QuadraticMaximum found;
  const auto product = [&](const at::Tensor& x) {
    throw_if_interrupted();
    ++found.products;
    return a.apply(x);
  };
  at::Tensor d = farthest(start), ad = product(d);
  for (;;) {
    found.value = inner_product(d, ad);
    found.nonfinite =
        !std::isfinite(found.value);  // so is the sum where any entry of A d is not, times 0 too
    if (found.nonfinite) return found;
    const at::Tensor s = farthest(ad), apart = s - d;
    const double slope = inner_product(apart, ad);  // half the derivative along s - d, not negative
    found.gap = 2 * std::max(0.0, slope);
    found.stationary = found.gap <= search.tolerance * std::abs(found.value);
    if (found.stationary || found.products > search.iterations) return found;

    const at::Tensor as = product(s), a_apart = as - ad;
    const double bend = inner_product(apart, a_apart);
    const double step = bend >= 0 ? 1 : std::min(1.0, -slope / bend);
    d = step == 1 ? s : d + step * apart;
    ad = step == 1 ? as : ad + step * a_apart;
  }
}

}  // namespace basin
