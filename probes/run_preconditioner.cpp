#include "probes/run_preconditioner.h"

#include <ATen/ATen.h>

#include "core/math/nan.h"
#include "hessian/objective.h"
#include "models/model.h"

namespace basin {

RunPreconditioner::RunPreconditioner(const ProbeContext& context, const at::Tensor& gradient)
    : vector_(context.problem.parameters()) {
  if (!context.optimizer) {
    why_missing_ = "the checkpoint has no optimiser";
    return;
  }
  if (!at::isfinite(gradient).all().item<bool>()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& p : context.optimizer->preconditioner(vector_.unflatten(gradient)))
    flat.push_back(p.to(at::kDouble).contiguous().flatten());
  diagonal_ = at::cat(flat);
  if (!at::isfinite(diagonal_).all().item<bool>()) {
    why_missing_ = "the optimiser has made no update yet, or its preconditioner isn't diagonal in any basis";
  } else if (!(diagonal_ > 0).all().item<bool>()) {
    why_missing_ = "the preconditioner is 0 for some weights";
  } else {
    exists_ = true;
    bases_ = context.optimizer->preconditioner_bases();
    hold_cancelled(context.problem);
  }
}

void RunPreconditioner::hold_cancelled(Problem& problem) {
  const Objective* network = problem.network();
  if (!network) return;
  for (int64_t at = 0; const ParameterInfo& p : vector_.parameters()) {
    const int64_t count = p.tensor.numel();
    if (network->model().is_cancelled(p.tensor)) {
      diagonal_.narrow(0, at, count).fill_(kInfinity);
      held_ += count;
    }
    at += count;
  }
}

at::Tensor RunPreconditioner::by_tensor(const at::Tensor& x, Product product) const {
  if (bases_.empty()) return x;
  const std::vector<at::Tensor> tensors = vector_.unflatten(x);
  std::vector<at::Tensor> flat;
  for (size_t i = 0; i < tensors.size(); ++i) {
    KroneckerFactors factors = bases_[i];
    for (at::Tensor& factor : factors)
      if (factor.defined()) factor = factor.to(x.options());
    flat.push_back(product(factors, tensors[i]).reshape({-1}));
  }
  return at::cat(flat);
}

at::Tensor RunPreconditioner::rotated(const at::Tensor& x) const { return by_tensor(x, kronecker_product); }

at::Tensor RunPreconditioner::rotated_back(const at::Tensor& x) const {
  return by_tensor(x, kronecker_transposed_product);
}

at::Tensor RunPreconditioner::inverse(const at::Tensor& x) const {
  return rotated(rotated_back(x.to(at::kDouble)) / diagonal_);
}

}  // namespace basin
