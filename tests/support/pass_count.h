// defines: counted(), the passes through a network that some work makes: counted in autograd, where nothing of ours counts.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <functional>
#include <memory>
#include <string>

namespace basin::testing {

/// Examples that went through an activation, forwards, backwards, and backwards through the backward pass.
struct Passes {
  double forward = 0, backward = 0, twice = 0;
};

/// Counts them while it lives, of tanh.
class PassCount {
 public:
  PassCount() {
    counted_ = {};
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&see).needsInputs(true).scopes(
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~PassCount() { at::removeCallback(handle_); }
  PassCount(const PassCount&) = delete;
  PassCount& operator=(const PassCount&) = delete;
  static Passes counted() { return counted_; }

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
    const std::string name = call.name();
    double* const count = name == "aten::tanh_"             ? &counted_.forward
                          : name == "TanhBackward0"         ? &counted_.backward
                          : name == "TanhBackwardBackward0" ? &counted_.twice
                                                            : nullptr;
    if (count) *count += static_cast<double>(call.inputs()[0].toTensor().size(0));
    return nullptr;
  }
  static inline Passes counted_;
  at::CallbackHandle handle_;
};

/// What it makes of a network with one hidden layer of tanh.
inline Passes counted(const std::function<void()>& work) {
  const PassCount count;
  work();
  return PassCount::counted();
}

}  // namespace basin::testing
