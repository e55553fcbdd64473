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

namespace {

/// x w' + b as a tensor of its own, at every position of x. at::linear() with a bias makes it a view of its rows, and what then works
/// on it in place gives it another place in the graph than the one that was noted.
at::Tensor product_of(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  if (x.dim() <= 2) return at::linear(x, w, b);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = w.size(0);
  return at::_unsafe_view(at::linear(x.flatten(0, -2), w, b), sizes);
}

}  // namespace

at::Tensor linear_map(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  if (LayerMap* map = LayerMap::active()) {
    const LayerMap::Arguments other = map->next({x, w, b});
    return product_of(other.x, other.weight, other.bias);
  }
  at::Tensor y = product_of(x, w, b);
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
