#include "hessian/linear_operator.h"

#include "hessian/objective.h"

namespace basin {

int64_t HessianOperator::size() const { return objective_.parameters().size(); }

at::ScalarType HessianOperator::dtype() const { return objective_.dtype(); }

at::Device HessianOperator::device() const { return objective_.device(); }

at::Tensor HessianOperator::apply(const at::Tensor& x) { return objective_.hvp(x); }

}  // namespace basin
