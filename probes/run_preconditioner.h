// defines: RunPreconditioner, P of a run's optimiser at the weights of a probe.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/math/kronecker.h"
#include "hessian/parameter_vector.h"
#include "probes/probe.h"

namespace basin {

/// P = Q D Q' of Optimizer::preconditioner() and preconditioner_bases(): D positive, a number for each weight, Q orthogonal, the identity
/// for diagonal methods. Everything flat. D is infinite, which holds a weight fixed, for a bias that a batch norm cancels: its gradient in
/// training is rounding, so Adam's P is nothing but its epsilon there, and frozen statistics would show a curvature along it that no
/// update meets.
class RunPreconditioner {
 public:
  /// `gradient`: flat, at the weights, over the examples measured.
  RunPreconditioner(const ProbeContext& context, const at::Tensor& gradient);

  /// Whether there is one; where there is none the rest isn't defined, and why_missing() says why in one line, or nothing where the
  /// gradient isn't finite.
  bool exists() const { return exists_; }
  const std::string& why_missing() const { return why_missing_; }

  const at::Tensor& diagonal() const { return diagonal_; }  // D, float64
  int64_t held() const { return held_; }                    // weights for which D is infinite
  at::Tensor rotated(const at::Tensor& x) const;            // Q x, in the type of x
  at::Tensor rotated_back(const at::Tensor& x) const;       // Q' x
  at::Tensor inverse(const at::Tensor& x) const;            // P^{-1} x, float64

 private:
  using Product = at::Tensor (*)(const KroneckerFactors&, at::Tensor);
  at::Tensor by_tensor(const at::Tensor& x, Product product) const;
  void hold_cancelled(Problem& problem);
  const ParameterVector& vector_;
  bool exists_ = false;
  at::Tensor diagonal_;
  int64_t held_ = 0;
  std::vector<KroneckerFactors> bases_;
  std::string why_missing_;
};

}  // namespace basin
