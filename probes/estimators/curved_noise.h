// defines: CurvedProducts, from which tr(H Sigma) and G'HG follow with a jackknife.
#pragma once

#include <ATen/core/Tensor.h>

#include "probes/estimators/noise_estimate.h"

namespace basin {

/// Products of gradients in the inner product of a Hessian H of either sign, float64 on the CPU. n examples,
/// m groups of b of them with mean gradients h_j and Hessians H_j, Gbar the mean of all n, a_j = h_j - Gbar.
///
/// tr(H Sigma) is taken apart by K = sum_k lambda_k u_k u_k', with any u_k and lambda_k; near the leading
/// eigenpairs of H most of it lies in the first part:
///   tr(K Sigma) = 1/(n - 1) sum_i sum_k lambda_k ((g_i - Gbar) . u_k)^2, of single examples;
///   tr((H - K) Sigma) = mean_j a_j' (H - K) a_j b n / (n - b), of groups.
/// Given H both are unbiased, and the sum is for every K: what is not in K costs accuracy alone. Without
/// group j, H is that of the examples left too.
struct CurvedProducts {
  at::Tensor values;       // [k]: lambda
  at::Tensor along;        // [n, k]: g_i . u_k
  at::Tensor groups;       // [m, b], int64: the examples of each group; what is left over is in none
  at::Tensor deviations;   // [m, m]: a_j' H a_l
  at::Tensor with_mean;    // [m]: a_j' H Gbar
  double mean_square = 0;  // Gbar' H Gbar
  at::Tensor in_group;     // [m, m]: a_l' H_j a_l
  at::Tensor with_group;   // [m, m]: a_j' H_j a_l
  at::Tensor mean_in_group, mean_with_group;  // [m]: Gbar' H_j Gbar, a_j' H_j Gbar
};

struct CurvedNoise {
  LeftOut numbers;                                      // trace is tr(H Sigma), mean_square Gbar' H Gbar
  double deflated = 0;                                  // tr(K Sigma), a part of the trace
  double remainder_deviation = 0, plain_deviation = 0;  // over groups, of single terms without and with K
};
CurvedNoise curved_noise(const CurvedProducts& products);

}  // namespace basin
