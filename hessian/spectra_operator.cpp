#include "hessian/spectra_operator.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/interrupt.h"

namespace basin {

void SpectraOperator::perform_op(const double* x, double* y) const {
  const int64_t n = rows();
  if (pass_through_) {
    pass_through_ = false;
    std::copy(x, x + n, y);
    return;
  }
  std::fill(y, y + n, 0.0);
  if (failed()) return;
  try {
    throw_if_interrupted();
    const at::Tensor host = at::from_blob(const_cast<double*>(x), {n}, at::kDouble);
    const at::Tensor answer = inner_.apply(host.to(inner_.device(), inner_.dtype(), false, /*copy=*/true));
    ++products_;
    at::Tensor product = at::from_blob(y, {n}, at::kDouble);
    product.copy_(answer.detach());
    const double norm = product.norm().item<double>();
    if (!std::isfinite(norm)) {
      nonfinite_ = true;
      product.zero_();
      return;
    }
    if (scale_ == 0) scale_ = norm > 0 ? norm : 1.0;
    product.div_(scale_);
  } catch (...) {
    failure_ = std::current_exception();
    std::fill(y, y + n, 0.0);
  }
}

void SpectraOperator::rethrow_if_failed() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace basin
