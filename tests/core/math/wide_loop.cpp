#include "tests/core/math/wide_loop.h"

#include <cmath>
#include <cstddef>

#include "core/math/wide_registers.h"

namespace basin::testing {
namespace {

void loop(size_t n, const double* x, const double* y, const double* z, double* __restrict out) {
  for (size_t i = 0; i < n; ++i) out[i] = x[i] * y[i] + z[i] / std::sqrt(x[i] * x[i] + 1);
}

}  // namespace

std::vector<double> wide_loop(int width, const std::vector<double>& x, const std::vector<double>& y,
                              const std::vector<double>& z) {
  std::vector<double> out(x.size());
  const bool done = wide::run(width, [&] { loop(x.size(), x.data(), y.data(), z.data(), out.data()); });
  return done ? out : std::vector<double>();
}

}  // namespace basin::testing
