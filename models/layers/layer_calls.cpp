#include "models/layers/layer_calls.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include "models/layers/layer_map.h"

namespace basin {

thread_local LayerCalls* LayerCalls::active_ = nullptr;

void LayerCalls::add(LayerCall call, const at::Tensor& y) {
  if (!y.requires_grad()) return;
  call.output_edge = torch::autograd::impl::gradient_edge(y);
  list_.push_back(std::move(call));
}

at::Tensor linear_map(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  if (LayerMap* map = LayerMap::active()) {
    const LayerMap::Arguments other = map->next({x, w, b});
    return at::linear(other.x, other.weight, other.bias);
  }
  at::Tensor y = at::linear(x, w, b);
  if (LayerCalls* calls = LayerCalls::active()) {
    LayerCall call{LayerCall::Kind::linear, w, b, x};
    call.channels_last = true;
    calls->add(std::move(call), y);
  }
  return y;
}

namespace {

at::Tensor noted_embedding(const at::Tensor& w, const at::Tensor& index, at::Tensor y) {
  if (LayerCalls* calls = LayerCalls::active()) {
    LayerCall call{LayerCall::Kind::embedding, w, {}, index};
    call.channels_last = true;
    calls->add(std::move(call), y);
  }
  return y;
}

}  // namespace

at::Tensor embedded(const at::Tensor& w, const at::Tensor& index) {
  return noted_embedding(w, index, at::embedding(w, index));
}

at::Tensor expanded_rows(const at::Tensor& w, int64_t n) {
  const at::Tensor index = at::arange(w.size(0), w.options().dtype(at::kLong).requires_grad(false));
  return noted_embedding(w, index.expand({n, -1}), w.unsqueeze(0).expand({n, -1, -1}));
}

}  // namespace basin
