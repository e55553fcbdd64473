#include "probes/estimators/layer_sums.h"

#include <ATen/ATen.h>

namespace basin {

LayerSums::LayerSums(const ParameterVector& vector) : vector_(vector) {
  std::vector<int64_t> layer;
  for (const ParameterInfo& p : vector.parameters()) {
    const auto known = std::find(names_.begin(), names_.end(), p.layer);
    layer.push_back(known - names_.begin());
    if (known == names_.end()) names_.push_back(p.layer);
  }
  layer_ = at::tensor(layer, at::kLong);
}

at::Tensor LayerSums::of_tensors(const at::Tensor& by_tensor) const {
  return at::zeros({by_tensor.size(0), size()}, by_tensor.options()).index_add_(1, layer_, by_tensor);
}

at::Tensor LayerSums::of_parameters(const at::Tensor& flat) const {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& tensor : vector_.unflatten(flat)) sums.push_back(tensor.sum());
  return of_tensors(at::stack(sums).unsqueeze(0)).squeeze(0);
}

}  // namespace basin
