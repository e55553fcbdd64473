#include "core/math/tensor_norms.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/math/lane_sum.h"
#include "core/math/wide_registers.h"

namespace basin {
namespace {

/// f(i) summed with the widest registers.
template <class F>
double sum_of(int64_t n, const F& f) {
  double sum = 0;
  with_wide_registers([&] { sum = lane_sum(n, f); });
  return sum;
}

double squared(double value) { return value * value; }

template <class T>
double dense_squared_norm(const at::Tensor& a) {
  const T* x = a.const_data_ptr<T>();
  return sum_of(a.numel(), [x](int64_t i) { return squared(static_cast<double>(x[i])); });
}

template <class T>
double dense_squared_distance(const at::Tensor& a, const at::Tensor& b) {
  const T *x = a.const_data_ptr<T>(), *y = b.const_data_ptr<T>();
  return sum_of(a.numel(),
                [x, y](int64_t i) { return squared(static_cast<double>(x[i]) - static_cast<double>(y[i])); });
}

template <class T>
double dense_inner_product(const at::Tensor& a, const at::Tensor& b) {
  const T *x = a.const_data_ptr<T>(), *y = b.const_data_ptr<T>();
  return sum_of(a.numel(),
                [x, y](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
}

// The order of elements in memory doesn't matter, only that there are no gaps.
bool dense(const at::Tensor& a) { return a.device().is_cpu() && a.is_non_overlapping_and_dense(); }

bool same_dense_memory(const at::Tensor& a, const at::Tensor& b) {
  return dense(a) && b.device().is_cpu() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

}  // namespace

double squared_norm(const at::Tensor& a) {
  if (dense(a) && a.scalar_type() == at::kFloat) return dense_squared_norm<float>(a);
  if (dense(a) && a.scalar_type() == at::kDouble) return dense_squared_norm<double>(a);
  return a.detach().to(at::kDouble).square().sum().item<double>();
}

double squared_norm(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& a : tensors) sum += squared_norm(a);
  return sum;
}

double norm_of(const at::Tensor& a) { return std::sqrt(squared_norm(a)); }

double squared_distance(const at::Tensor& a, const at::Tensor& b) {
  if (same_dense_memory(a, b) && a.scalar_type() == at::kFloat) return dense_squared_distance<float>(a, b);
  if (same_dense_memory(a, b) && a.scalar_type() == at::kDouble) return dense_squared_distance<double>(a, b);
  return squared_norm(a.detach().to(at::kDouble) - b.detach().to(at::kDouble));
}

double inner_product(const at::Tensor& a, const at::Tensor& b) {
  if (same_dense_memory(a, b) && a.scalar_type() == at::kFloat) return dense_inner_product<float>(a, b);
  if (same_dense_memory(a, b) && a.scalar_type() == at::kDouble) return dense_inner_product<double>(a, b);
  return a.detach().to(at::kDouble).mul(b.detach().to(at::kDouble)).sum().item<double>();
}

}  // namespace basin
