// defines: LayerCalls, a record of what layers with parameters were called with; linear_map().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <vector>

namespace basin {

/// One call y = layer(x) of a forward pass. From x and the gradient of a sum of losses by y follow the
/// gradients of single examples by the layer's parameters (hessian/gradients/layer_gradients.h).
struct LayerCall {
  enum class Kind {
    convolution,       // y = x * weight + bias over [n, C, H, W]
    linear,            // y = x weight' + bias over [n, in] or [n, T, in]
    embedding,         // y = rows x of the weight, x int64 [n, T]
    scaling,           // y = weight factor(x) + bias by channel, over [n, C, ...] or [n, ..., C]
    batch_statistics,  // a normalisation by its batch: y_i depends on the other examples
  };
  Kind kind;
  at::Tensor weight, bias;  // as handed in; undefined where the layer has none
  at::Tensor x;
  int64_t stride = 1, padding = 0;
  /// What the weight multiplies, of some or all examples: x normalised.
  std::function<at::Tensor(const at::Tensor& x)> factor{};
  torch::autograd::Edge output_edge{};  // where the gradient by y enters the graph
  bool channels_last = false;           // the outputs are [n, ..., C]
};

/// The calls of this thread for as long as it lives, in their order. It keeps the inputs and the graph alive.
/// Layers with parameters report theirs; outside of such a record that costs them a look at one pointer. What
/// works on y in place later doesn't matter: the edge is that of y as the layer gave it.
class LayerCalls {
 public:
  LayerCalls() : before_(active_) { active_ = this; }
  ~LayerCalls() { active_ = before_; }
  LayerCalls(const LayerCalls&) = delete;
  LayerCalls& operator=(const LayerCalls&) = delete;

  /// Null where nobody records.
  static LayerCalls* active() { return active_; }
  /// Keeps nothing of a y that needs no gradient.
  void add(LayerCall call, const at::Tensor& y);
  const std::vector<LayerCall>& list() const { return list_; }

 private:
  static thread_local LayerCalls* active_;
  LayerCalls* before_;
  std::vector<LayerCall> list_;
};

/// at::linear, recorded.
at::Tensor linear_map(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
/// at::embedding, recorded: rows `index` [n, T] of w.
at::Tensor embedded(const at::Tensor& w, const at::Tensor& index);
/// All rows of w for each of n examples, recorded as an embedding by 0, 1, ...
at::Tensor expanded_rows(const at::Tensor& w, int64_t n);

}  // namespace basin
