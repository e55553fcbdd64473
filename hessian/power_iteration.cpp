#include "hessian/power_iteration.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/math/tensor_norms.h"
#include "hessian/trace.h"

namespace basin {
namespace {

at::Tensor shortened(const at::Tensor& x) { return x / (norm_of(x) + kPowerEpsilon); }

bool steady(double before, double now, double tolerance) {
  return std::abs(before - now) < tolerance * (std::abs(before) + kPowerEpsilon);
}

/// One more pair than those found; its iterations into `products`. A value that isn't finite ends it.
Eigenpair next_pair(LinearOperator& op, const PowerOptions& options, const std::vector<Eigenpair>& found,
                    at::Generator& generator, int64_t& products) {
  at::Tensor v = shortened(at::randn({op.size()}, generator, at::kDouble).to(op.device(), op.dtype()));
  Eigenpair pair;
  for (products = 1; products <= options.iterations; ++products) {
    for (const Eigenpair& other : found) v = v - other.vector * inner_product(v, other.vector);
    v = shortened(v);
    const at::Tensor product = op.apply(v).detach();
    const double theta = inner_product(product, v);
    pair.vector = shortened(product);
    const bool stops = products > 1 && steady(pair.value, theta, options.tolerance);
    if (stops) return pair;  // with the quotient before
    pair.value = theta;
    pair.residual = norm_of(product - v * theta) / norm_of(v);
    if (!std::isfinite(theta)) return pair;
    v = pair.vector;
  }
  products = options.iterations;
  return pair;
}

}  // namespace

PowerResult power_eigenpairs(LinearOperator& op, const PowerOptions& options, at::Generator& generator) {
  PowerResult result;
  const int64_t count = std::min(options.count, op.size());
  while (static_cast<int64_t>(result.pairs.size()) < count) {
    int64_t products = 0;
    Eigenpair pair = next_pair(op, options, result.pairs, generator, products);
    result.iterations.push_back(products);
    result.products += products;
    if (!std::isfinite(pair.value)) {
      result.status = SolverStatus::nonfinite;
      result.pairs.clear();
      return result;
    }
    pair.relative_residual = pair.residual / std::abs(pair.value);
    pair.value_bound = pair.residual;
    pair.converged = pair.residual <= options.tolerance * std::abs(pair.value);
    if (!pair.converged) result.status = SolverStatus::not_converged;
    result.pairs.push_back(std::move(pair));
  }
  return result;
}

SampleMean steady_trace(LinearOperator& op, int64_t most, double tolerance, at::Generator& generator) {
  TraceSamples samples(op.size(), {});
  double before = 0;
  for (int64_t i = 0; i < most; ++i) {
    const at::Tensor z = random_signs(op, generator);
    samples.add(z, op.apply(z).detach());
    const double now = samples.trace().value;
    if (!std::isfinite(now) || steady(before, now, tolerance)) break;
    before = now;
  }
  return samples.trace();
}

}  // namespace basin
