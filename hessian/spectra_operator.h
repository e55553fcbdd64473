// defines: SpectraOperator, a LinearOperator in the shape that Spectra's solvers ask for.
#pragma once

#include <cstdint>
#include <exception>

#include "hessian/linear_operator.h"

namespace basin {

/// Spectra hands over host arrays of double; the operator may live on a device and compute in float32.
///
/// Spectra compares norms with absolute thresholds near 1e-16 and turns its start vector v into A v, which
/// hides the null space and costs a product. Hence the first call answers with its argument, and all products
/// are divided by the norm of the first one, so that a Hessian of any size looks like one of
/// size 1.
///
/// perform_op() is const and must not throw: a failure is kept, zeros are returned, and rethrow_if_failed()
/// throws it.
class SpectraOperator {
 public:
  using Scalar = double;

  explicit SpectraOperator(LinearOperator& inner) : inner_(inner) {}

  int64_t rows() const { return inner_.size(); }
  int64_t cols() const { return inner_.size(); }
  void perform_op(const double* x, double* y) const;

  /// Call before a solver is started: its first product is the one that Spectra wastes on the start vector.
  void expect_start() { pass_through_ = true; }
  int64_t products() const { return products_; }
  /// An answer held NaN or infinity, or an exception was caught; later calls return zeros at once.
  bool failed() const { return nonfinite_ || failure_; }
  bool nonfinite() const { return nonfinite_; }
  void rethrow_if_failed() const;

 private:
  LinearOperator& inner_;
  mutable std::exception_ptr failure_;
  mutable bool pass_through_ = false, nonfinite_ = false;
  mutable double scale_ = 0;  // 0: no product yet
  mutable int64_t products_ = 0;
};

}  // namespace basin
