#include "hessian/operators.h"

#include <ATen/ATen.h>

#include "core/error.h"

namespace basin {

RestrictedOperator::RestrictedOperator(LinearOperator& inner, at::Tensor index)
    : DerivedOperator(inner), index_(index.to(inner.device(), at::kLong)) {
  if (index_.numel() == 0) throw ConfigError("a restriction to no coordinates has no eigenvalues");
}

at::Tensor RestrictedOperator::apply(const at::Tensor& x) {
  const at::Tensor padded = at::zeros({inner_.size()}, at::TensorOptions(dtype()).device(device()));
  padded.index_copy_(0, index_, x.to(padded.options()));
  return inner_.apply(padded).index_select(0, index_);
}

at::Tensor coordinates_of(const std::vector<ParameterInfo>& parameters,
                          const std::function<bool(const ParameterInfo&)>& wanted) {
  std::vector<at::Tensor> pieces = {at::empty({0}, at::kLong)};
  int64_t first = 0;
  for (const ParameterInfo& parameter : parameters) {
    const int64_t count = parameter.tensor.numel();
    if (wanted(parameter)) pieces.push_back(at::arange(first, first + count, at::kLong));
    first += count;
  }
  return at::cat(pieces);
}

at::Tensor AffineOperator::apply(const at::Tensor& x) { return inner_.apply(x) * scale_ + x * shift_; }

PreconditionedOperator::PreconditionedOperator(LinearOperator& inner, const at::Tensor& preconditioner)
    : DerivedOperator(inner) {
  const at::Tensor p = preconditioner.to(at::kDouble);
  if (p.numel() != inner.size() || !(p > 0).all().item<bool>())
    throw ConfigError("a preconditioner needs one positive number per parameter");
  inverse_root_ = p.rsqrt().to(inner.device(), inner.dtype());
}

at::Tensor PreconditionedOperator::apply(const at::Tensor& x) {
  return inverse_root_ * inner_.apply(inverse_root_ * x);
}

}  // namespace basin
