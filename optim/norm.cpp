#include "optim/norm.h"

#include <ATen/Parallel.h>

namespace basin {

namespace {

// Blocks of a fixed size, added in order: threads change who computes a block, not the sum.
constexpr int64_t block = 1 << 16;

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

template <class T>
double blocked_norm(const T* x, int64_t n) {
  if (n <= block) return std::sqrt(sum_of_squares(x, n));
  const int64_t blocks = (n + block - 1) / block;
  std::vector<double> partial(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      partial[static_cast<size_t>(b)] = sum_of_squares(x + b * block, std::min(block, n - b * block));
    }
  });
  return std::sqrt(std::accumulate(partial.begin(), partial.end(), 0.0));
}

}  // namespace

double norm_of(const at::Tensor& x) {
  // The order of elements in memory doesn't matter, only that there are no gaps.
  if (x.device().is_cpu() && x.is_non_overlapping_and_dense()) {
    if (x.scalar_type() == at::kFloat) return blocked_norm(x.const_data_ptr<float>(), x.numel());
    if (x.scalar_type() == at::kDouble) return blocked_norm(x.const_data_ptr<double>(), x.numel());
  }
  return at::linalg_vector_norm(x, 2, std::nullopt, false, at::kDouble).item<double>();
}

}  // namespace basin
