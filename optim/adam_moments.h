// defines: AdamMoments, the direction that AdamW and LAMB share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace basin {

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  with the bias corrections of update t = 1,
/// 2, ...
///   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
/// (Kingma & Ba 2015, algorithm 1). An element with m = 0 has r = 0, also where eps = 0 would make it 0/0.
struct AdamMoments {
  double beta1, beta2, eps;
  /// Changes m and v, returns a fresh r.
  at::Tensor direction(at::Tensor& m, at::Tensor& v, const at::Tensor& gradient, int64_t t) const;
};

}  // namespace basin
