// defines: cosine_alignment() and trace_alignment(), of two matrices from estimates of their traces and
// norms.
#pragma once

#include <cstdint>

#include "core/math/ratio_estimate.h"
#include "core/math/statistics.h"

namespace basin {

/// Two sums over a symmetric matrix; without an error where there are no samples.
struct MatrixSums {
  SampleMean trace, squared_frobenius;
};

/// Estimates of tr(AB), of A and of B that are independent of each other, errors by the delta method; `t`:
/// their 95 % quantile. Neither is unbiased: of order of the squared relative errors.
///   cosine:  tr(AB) / (|A|_F |B|_F)
///   trace:   tr(AB) d / (tr A tr B), 1 where B or A is a multiple of the identity
/// The second one's interval is Fieller's, and all numbers where tr A tr B is not resolved.
Estimate cosine_alignment(const Estimate& trace_of_product, const MatrixSums& a, const MatrixSums& b,
                          double t);
Estimate trace_alignment(const Estimate& trace_of_product, const MatrixSums& a, const MatrixSums& b,
                         int64_t d, double t);

}  // namespace basin
