// defines: LayerMap, which replaces what layers compute with.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <functional>

namespace basin {

/// During its lifetime the convolutions and linear layers of this thread compute with what `map` makes of
/// their arguments: a variant of the network, for instance with all weights squared, without changing a
/// parameter. A batch norm that is folded (NormMode::folded) is in weight and bias. No gradient is recorded.
class LayerMap {
 public:
  struct Arguments {
    at::Tensor x, weight, bias;  // bias undefined where there is none
  };
  /// call: 0, 1, ... in the order of the forward pass.
  using Map = std::function<Arguments(Arguments arguments, int64_t call)>;
  explicit LayerMap(Map map) : map_(std::move(map)), before_(active_) { active_ = this; }
  ~LayerMap() { active_ = before_; }
  LayerMap(const LayerMap&) = delete;
  LayerMap& operator=(const LayerMap&) = delete;

  /// Null where nobody maps.
  static LayerMap* active() { return active_; }
  Arguments next(Arguments arguments) { return map_(std::move(arguments), calls_++); }

 private:
  static thread_local LayerMap* active_;
  at::NoGradGuard no_grad_;
  Map map_;
  LayerMap* before_;
  int64_t calls_ = 0;
};

}  // namespace basin
