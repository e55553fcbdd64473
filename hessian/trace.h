// defines: random_signs(), Deflation and TraceSamples: trace, Frobenius norm and diagonal of an operator from random
// products.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/math/statistics.h"
#include "hessian/linear_operator.h"

namespace basin {

/// Independent signs +-1 of the operator's size, type and device, drawn on the host.
at::Tensor random_signs(const LinearOperator& op, at::Generator& generator);

/// Orthonormal rows V [m, n] and their products W = A V; both empty: nothing is deflated.
struct Deflation {
  at::Tensor vectors, products;
};

/// Estimates from vectors z of independent signs +-1 and their products A z, with P = I - V^T V:
///
///   tr A     = sum_i v_i . A v_i + E[(P z) . A (P z)]      Hutchinson 1990 on the complement (Meyer et al.,
///   |A|_F^2  = sum_i |A v_i|^2   + E[|A P z|^2]            Hutch++, SOSA 2021, with V from Lanczos)
///   diag A   = sum_i v_i * A v_i + E[z * (A P z)]          Bekas, Kokiopoulou & Saad, ANM 57, 2007
///
/// All three are unbiased for any V that doesn't depend on the z, and none takes a product beyond A z, since
/// A P z = A z - W^T (V z). So the first product of every Lanczos start for a density is a sample of each.
/// What shares V is not independent: the estimates of one pass err together, and the standard error is that
/// of the z given V. Unit: loss/weight^2 for a Hessian (its square for |A|_F^2).
class TraceSamples {
 public:
  /// The diagonal takes three vectors of n on the host, and a copy to there for each sample: only where
  /// wanted.
  enum class Keep { scalars, diagonal };
  TraceSamples(int64_t n, Deflation deflation, Keep keep = Keep::scalars);
  void add(const at::Tensor& z, const at::Tensor& az);
  SampleMean trace() const;
  SampleMean squared_frobenius() const;
  struct Diagonal {
    at::Tensor value, standard_error;  // float64, flat; the error is NaN for one sample
  };
  Diagonal diagonal() const;  // of samples that kept it

 private:
  void add_to_diagonal(const at::Tensor& sample);
  Deflation deflation_;
  double deflated_trace_ = 0, deflated_squares_ = 0;
  std::vector<double> trace_, squares_;
  at::Tensor diagonal_mean_, diagonal_spread_, deflated_diagonal_;  // Welford's mean and sum of squares
};

}  // namespace basin
