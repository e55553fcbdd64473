#include "trainers/flat_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace basin {

at::Tensor flat_on_host(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) parts.push_back(tensor.detach().reshape(-1));
  return at::cat(parts).to(at::kCPU);
}

void take_from_flat(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t first = 0;
  for (at::Tensor tensor : tensors) {
    tensor.copy_(flat.narrow(0, first, tensor.numel()).view(tensor.sizes()));
    first += tensor.numel();
  }
}

}  // namespace basin
