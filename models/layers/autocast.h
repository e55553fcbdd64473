// defines: Autocast, forward passes in bfloat16 for as long as it lives; autocasted().
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace basin {

/// torch's autocast of this thread, on one kind of device, to bfloat16: convolutions and matrix products
/// round their arguments to 8 bits of mantissa (relative error 2^-9) and add up in float32 (on a CPU without
/// AVX-512 each image's part of a convolution's sums is rounded too); what follows runs in the type that it is
/// given. Weights stay what they are and their gradients come in their type. No cache of the rounded weights: a
/// forward pass uses each once, and a captured graph must round them anew (pytorch #84289). Does nothing where
/// `on` is false. A backward pass needs none of it and belongs outside.
class Autocast {
 public:
  Autocast(bool on, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  at::DeviceType type_;
  bool was_enabled_ = false, was_cached_ = false;
  at::ScalarType was_dtype_ = at::kFloat;
};

/// `x` as torch's autocast would hand it to a convolution; itself where there is none. For functions with a
/// backward pass of their own: theirs sees what was computed with.
at::Tensor autocasted(const at::Tensor& x);

}  // namespace basin
