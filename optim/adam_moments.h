// defines: AdamMoments and MomentOptions, what AdamW and LAMB share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "optim/exclusion.h"

namespace basin {

struct MomentOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  std::vector<std::string> exclude_from_decay = default_exclusions();
};
/// `weight_decay_help`: where the method puts it.
void bind_moment_options(OptionTable& table, MomentOptions& options, const std::string& weight_decay_help);

/// The optimiser's slots for m and v, in this order.
inline constexpr const char* kMomentSlots[] = {"first_moment", "second_moment"};

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  with the bias corrections of update t = 1,
/// 2, ...
///   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
/// (Kingma & Ba 2015, algorithm 1). An element with m = 0 has r = 0, also where eps = 0 would make it 0/0.
struct AdamMoments {
  explicit AdamMoments(const MomentOptions& options)
      : beta1(options.beta1), beta2(options.beta2), eps(options.eps) {}
  double beta1, beta2, eps;
  /// sqrt(v / (1 - beta2^t)) + eps, in float64. NaN for t = 0.
  at::Tensor denominator(const at::Tensor& v, int64_t t) const;
  /// 2 (1 + beta1) / (1 - beta1): momentum as a moving average of gradients (arXiv 2207.14484, section 3).
  double stability_limit() const { return 2 * (1 + beta1) / (1 - beta1); }
  /// Changes m and v, returns a fresh r.
  at::Tensor direction(at::Tensor& m, at::Tensor& v, const at::Tensor& gradient, int64_t t) const;
};

}  // namespace basin
