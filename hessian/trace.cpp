#include "hessian/trace.h"

#include <ATen/ATen.h>

#include "hessian/krylov_basis.h"

namespace basin {
namespace {

SampleMean shifted(SampleMean estimate, double by) {
  estimate.value += by;
  return estimate;
}

}  // namespace

at::Tensor random_signs(const LinearOperator& op, at::Generator& generator) {
  const at::Tensor bits = at::randint(0, 2, {op.size()}, generator, at::kDouble);
  return bits.mul_(2).sub_(1).to(op.device(), op.dtype());
}

TraceSamples::TraceSamples(int64_t n, Deflation deflation, Keep keep) : deflation_(std::move(deflation)) {
  if (keep == Keep::diagonal) {
    for (at::Tensor* sum : {&diagonal_mean_, &diagonal_spread_, &deflated_diagonal_})
      *sum = at::zeros({n}, at::kDouble);
  }
  if (!deflation_.vectors.defined()) return;
  for (int64_t i = 0; i < deflation_.vectors.size(0); ++i) {
    const at::Tensor v = deflation_.vectors[i].to(at::kDouble), w = deflation_.products[i].to(at::kDouble);
    deflated_trace_ += v.dot(w).item<double>();
    deflated_squares_ += w.dot(w).item<double>();
    if (keep == Keep::diagonal) deflated_diagonal_.add_((v * w).cpu());
  }
}

void TraceSamples::add(const at::Tensor& z, const at::Tensor& az) {
  at::Tensor rest = z, product = az;  // P z and A P z
  if (deflation_.vectors.defined()) {
    const at::Tensor inside = at::mv(deflation_.vectors, z);
    rest = z - at::mv(deflation_.vectors.t(), inside);
    product = az - at::mv(deflation_.products.t(), inside);
  }
  trace_.push_back(dot64(rest, product));
  squares_.push_back(dot64(product, product));
  if (diagonal_mean_.defined()) add_to_diagonal((z * product).to(at::kCPU, at::kDouble));
}

void TraceSamples::add_to_diagonal(const at::Tensor& sample) {
  const at::Tensor change = sample - diagonal_mean_;
  diagonal_mean_.add_(change, 1.0 / static_cast<double>(trace_.size()));
  diagonal_spread_.addcmul_(change, sample - diagonal_mean_);
}

SampleMean TraceSamples::trace() const { return shifted(mean_of(trace_), deflated_trace_); }

SampleMean TraceSamples::squared_frobenius() const { return shifted(mean_of(squares_), deflated_squares_); }

TraceSamples::Diagonal TraceSamples::diagonal() const {
  const auto n = static_cast<double>(trace_.size());
  return {deflated_diagonal_ + diagonal_mean_, (diagonal_spread_ / ((n - 1) * n)).sqrt()};
}

}  // namespace basin
