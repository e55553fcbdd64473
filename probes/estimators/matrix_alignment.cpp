#include "probes/estimators/matrix_alignment.h"

#include <cmath>

namespace basin {
namespace {

double square(double value) { return value * value; }

}  // namespace

Estimate cosine_alignment(const Estimate& trace_of_product, const MatrixSums& a, const MatrixSums& b,
                          double t) {
  const SampleMean &fa = a.squared_frobenius, &fb = b.squared_frobenius;
  const double norms = std::sqrt(fa.value * fb.value), cosine = trace_of_product.value / norms;
  const double relative = square(fa.standard_error / fa.value) + square(fb.standard_error / fb.value);
  const double error = std::sqrt(square(trace_of_product.error / norms) + square(cosine / 2) * relative);
  return {cosine, error, cosine - t * error, cosine + t * error};
}

Estimate trace_alignment(const Estimate& trace_of_product, const MatrixSums& a, const MatrixSums& b,
                         int64_t d, double t) {
  const double traces = a.trace.value * b.trace.value, sign = traces < 0 ? -1 : 1;
  const double variance =
      square(a.trace.standard_error * b.trace.value) + square(b.trace.standard_error * a.trace.value);
  const double factor = sign * static_cast<double>(d);
  return signed_ratio(trace_of_product.value * factor, traces * sign, square(trace_of_product.error * factor),
                      variance, 0, t);
}

}  // namespace basin
