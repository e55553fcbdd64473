// defines: RestrictedOperator, AffineOperator, RotatedOperator, PreconditionedOperator and their base DerivedOperator.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>

#include "core/parameter.h"
#include "hessian/linear_operator.h"

namespace basin {

/// An operator made of another, with its size, type and device unless said otherwise.
class DerivedOperator : public LinearOperator {
 public:
  explicit DerivedOperator(LinearOperator& inner) : inner_(inner) {}
  int64_t size() const override { return inner_.size(); }
  at::ScalarType dtype() const override { return inner_.dtype(); }
  at::Device device() const override { return inner_.device(); }
  const RankGroup& ranks() const override { return inner_.ranks(); }

 protected:
  LinearOperator& inner_;
};

/// S A S^T, S the rows `index` of the identity: A restricted to some coordinates, as a matrix of that size.
class RestrictedOperator : public DerivedOperator {
 public:
  /// index: int64, ascending, within 0 .. inner.size() - 1.
  RestrictedOperator(LinearOperator& inner, at::Tensor index);
  int64_t size() const override { return index_.numel(); }
  at::Tensor apply(const at::Tensor& x) override;
  const at::Tensor& index() const { return index_; }

 private:
  at::Tensor index_;
};

/// Coordinates of the parameters for which `wanted` holds, in the order of the flat vector.
at::Tensor coordinates_of(const std::vector<ParameterInfo>& parameters,
                          const std::function<bool(const ParameterInfo&)>& wanted);

/// scale A + shift I.
class AffineOperator : public DerivedOperator {
 public:
  AffineOperator(LinearOperator& inner, double scale, double shift)
      : DerivedOperator(inner), scale_(scale), shift_(shift) {}
  at::Tensor apply(const at::Tensor& x) override;

 private:
  double scale_, shift_;
};

/// Q' A Q, Q orthogonal, as functions of flat vectors.
class RotatedOperator : public DerivedOperator {
 public:
  using Rotation = std::function<at::Tensor(const at::Tensor&)>;
  RotatedOperator(LinearOperator& inner, Rotation rotated, Rotation rotated_back)
      : DerivedOperator(inner), rotated_(std::move(rotated)), rotated_back_(std::move(rotated_back)) {}
  at::Tensor apply(const at::Tensor& x) override { return rotated_back_(inner_.apply(rotated_(x))); }

 private:
  Rotation rotated_, rotated_back_;  // Q x and Q' x
};

/// P^{-1/2} A P^{-1/2} with a diagonal P > 0: the curvature that an optimiser with steps -lr P^{-1} g sees.
/// Its eigenvalues are those of P^{-1} A.
class PreconditionedOperator : public DerivedOperator {
 public:
  /// preconditioner: P, flat and positive; infinite where a weight is held fixed.
  PreconditionedOperator(LinearOperator& inner, const at::Tensor& preconditioner);
  at::Tensor apply(const at::Tensor& x) override;

 private:
  at::Tensor inverse_root_;
};

}  // namespace basin
