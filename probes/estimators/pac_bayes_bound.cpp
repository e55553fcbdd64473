#include "probes/estimators/pac_bayes_bound.h"

#include <ATen/ATen.h>

#include <cmath>

namespace basin {
namespace {

constexpr double kConstant = 10;  // the paper's

/// 1/2 sum_i ln(prior / s_i^2).
double half_log_ratios(double prior, const at::Tensor& variances) {
  return 0.5 * (std::log(prior) - variances.log()).sum().item<double>();
}

at::Tensor variances_of(const at::Tensor& size, double sigma, double eps) {
  return size.square().mul_(sigma * sigma).add_(eps * eps);
}

}  // namespace

double pac_bayes_bound(double divergence, double sigma, double examples) {
  if (std::isinf(sigma)) return 0;
  const double inside = divergence / 2 + std::log(examples / sigma) + kConstant;
  return std::sqrt(inside < 0 ? 0 : inside / examples);
}

double plain_divergence(double squared_distance, double sigma) {
  return squared_distance / (2 * sigma * sigma);
}

double magnitude_divergence(const at::Tensor& size, const at::Tensor& distance, double sigma, double eps) {
  const at::Tensor variances = variances_of(size, sigma, eps);
  return half_log_ratios((variances + distance.square()).mean().item<double>(), variances);
}

double rgm_divergence(const at::Tensor& a, const at::Tensor& b, double sigma, double eps) {
  const double prior = eps * eps + (sigma * sigma + 1) * a.square().mean().item<double>();
  return half_log_ratios(prior, variances_of(b, sigma, eps));
}

}  // namespace basin
