#include "hessian/parameter_vector.h"

#include <ATen/ATen.h>

#include "core/error.h"

namespace basin {

ParameterVector::ParameterVector(std::vector<ParameterInfo> parameters) : parameters_(std::move(parameters)) {
  for (const ParameterInfo& parameter : parameters_) size_ += parameter.tensor.numel();
  if (size_ == 0) throw ConfigError("a model without trainable parameters has no loss surface");
}

std::vector<at::Tensor> ParameterVector::tensors() const {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters_.size());
  for (const ParameterInfo& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

at::Tensor ParameterVector::gather() const {
  at::NoGradGuard no_grad;
  return flatten(tensors());
}

void ParameterVector::scatter(const at::Tensor& flat) const {
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> pieces = unflatten(flat);
  for (size_t i = 0; i < pieces.size(); ++i) parameters_[i].tensor.detach().copy_(pieces[i]);
}

at::Tensor ParameterVector::flatten(const std::vector<at::Tensor>& like) const {
  TORCH_CHECK(like.size() == parameters_.size(), "expected one tensor per parameter");
  std::vector<at::Tensor> pieces;
  pieces.reserve(like.size());
  for (size_t i = 0; i < like.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    // reshape reads in logical order, so a channels-last tensor and a contiguous one give the same vector.
    pieces.push_back(like[i].defined()
                         ? like[i].reshape({-1})
                         : at::zeros({parameter.numel()}, parameter.options().requires_grad(false)));
  }
  return at::cat(pieces);
}

std::vector<at::Tensor> ParameterVector::unflatten(const at::Tensor& flat) const {
  TORCH_CHECK(flat.dim() == 1 && flat.numel() == size_, "expected a flat vector of ", size_, " numbers");
  std::vector<at::Tensor> pieces;
  pieces.reserve(parameters_.size());
  int64_t offset = 0;
  for (const ParameterInfo& parameter : parameters_) {
    pieces.push_back(flat.narrow(0, offset, parameter.tensor.numel()).view(parameter.tensor.sizes()));
    offset += parameter.tensor.numel();
  }
  return pieces;
}

}  // namespace basin
