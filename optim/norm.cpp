#include "optim/norm.h"

namespace basin {

namespace {

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  // Independent partial sums, so that the compiler may use vector registers.
  constexpr int64_t lanes = 16;
  std::array<double, lanes> partial{};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double value = x[i + lane];
      partial[static_cast<size_t>(lane)] += value * value;
    }
  }
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (double value : partial) sum += value;
  return sum;
}

}  // namespace

double norm_of(const at::Tensor& x) {
  // The order of elements in memory doesn't matter, only that there are no gaps.
  if (x.device().is_cpu() && x.is_non_overlapping_and_dense()) {
    if (x.scalar_type() == at::kFloat) return std::sqrt(sum_of_squares(x.const_data_ptr<float>(), x.numel()));
    if (x.scalar_type() == at::kDouble)
      return std::sqrt(sum_of_squares(x.const_data_ptr<double>(), x.numel()));
  }
  return at::linalg_vector_norm(x, 2, std::nullopt, false, at::kDouble).item<double>();
}

}  // namespace basin
