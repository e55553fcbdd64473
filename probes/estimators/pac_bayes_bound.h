// defines: the PAC-Bayes bounds of Gaussian noise on the weights.
#pragma once

#include <ATen/core/Tensor.h>

namespace basin {

/// sqrt((KL/2 + ln(m / sigma) + 10) / m), KL the divergence of the noisy weights N(w, S) from a prior, m the
/// training examples (Jiang et al., ICLR 2020, appendix C). 0 where the root's argument is negative, as at a
/// sigma that is infinite; infinite at 0.
double pac_bayes_bound(double divergence, double sigma, double examples);

/// KL of N(w, sigma^2 I) from N(w0, sigma^2 I): |w - w0|^2 / (2 sigma^2).
double plain_divergence(double squared_distance, double sigma);

/// KL of N(w, diag s_i^2) from the nearest prior N(c, lambda^2 I):
///   s_i^2 = sigma^2 r_i^2 + eps^2,  lambda^2 = 1/n sum_i (s_i^2 + d_i^2),  d = w - c,
///   KL = 1/2 sum_i ln(lambda^2 / s_i^2)
/// because that lambda makes the other terms of the divergence vanish together. `size` is r, `distance` d.
double magnitude_divergence(const at::Tensor& size, const at::Tensor& distance, double sigma, double eps);

/// As robust-generalization-measures has it: 1/2 sum_i ln(lambda^2 / (sigma^2 b_i^2 + eps^2)) with lambda^2 =
/// eps^2 + (sigma^2 + 1) |a|^2 / n. With a = b it is magnitude_divergence(a, a).
double rgm_divergence(const at::Tensor& a, const at::Tensor& b, double sigma, double eps);

}  // namespace basin
