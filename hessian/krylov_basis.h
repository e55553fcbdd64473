// defines: KrylovBasis, orthonormal vectors and their products on the operator's device.
#pragma once

#include <ATen/core/Tensor.h>

#include <Eigen/Core>
#include <cstdint>

#include "hessian/linear_operator.h"

namespace basin {

/// V = [v_1 .. v_m], orthonormal rows, and W = [A v_1 .. A v_m]: 2 m n numbers of the operator's type on its
/// device. Small matrices (m by m) live on the host in float64.
///
/// Several ranks divide the columns from kDividedFrom unknowns on: each holds 2 m n / ranks numbers and does that part of the work, and
/// sums over ranks make scalar products and whole vectors of it, with the same bits on every rank. All ranks call the same then. Vectors
/// that come in and go out are whole. Cost: a sum of n numbers for each project_out(), and of k n for k combined vectors.
///
/// Keeping W buys true residuals W y - theta V y of every Ritz pair without another product, and makes
/// restarts from any vectors possible; it costs as much memory as V.
class KrylovBasis {
 public:
  static constexpr int64_t kDividedFrom = 1 << 16;

  /// For vectors of `op`. Without products only vectors are kept, and append() takes no second argument.
  KrylovBasis(int64_t capacity, const LinearOperator& op, bool keep_products = true);

  int64_t size() const { return size_; }
  int64_t capacity() const { return vectors_.size(0); }
  bool full() const { return size_ == capacity(); }
  bool is_divided() const { return !ranks_.is_alone(); }
  int64_t numbers_here() const { return vectors_.numel() + products_.numel(); }
  at::Tensor vectors() const { return whole(vectors_.narrow(0, 0, size_)); }
  at::Tensor products() const { return whole(products_.narrow(0, 0, size_)); }

  /// v of unit length, orthogonal to the others; w = A v.
  void append(const at::Tensor& v, const at::Tensor& w = {});
  /// x -= V^T (V x), twice, which is enough (Giraud et al., Numer. Math. 101, 2005, theorem 2). Returns V x
  /// of before, summed over both passes.
  Eigen::VectorXd project_out(at::Tensor& x) const;
  /// W x.
  Eigen::VectorXd products_times(const at::Tensor& x) const;
  /// V^T y and W^T y for coefficients y [size, k]: k rows each.
  at::Tensor combine_vectors(const Eigen::MatrixXd& y) const { return combine(vectors_, y); }
  at::Tensor combine_products(const Eigen::MatrixXd& y) const { return combine(products_, y); }
  /// V <- Y^T V, W <- Y^T W in place, a stripe of columns at a time; y [size, k] with orthonormal columns.
  void compress(const Eigen::MatrixXd& y);

 private:
  at::Tensor combine(const at::Tensor& rows, const Eigen::MatrixXd& y) const;
  /// The columns of `x` that this rank holds; all columns, of which it has those.
  at::Tensor part(const at::Tensor& x) const;
  at::Tensor whole(const at::Tensor& part) const;

  int64_t n_;
  const RankGroup& ranks_;  // one, where nothing is divided
  Share columns_;
  at::Tensor vectors_, products_;  // [capacity, columns]
  int64_t size_ = 0;
};

/// x . y summed in float64, whatever their type.
double dot64(const at::Tensor& x, const at::Tensor& y);

/// Copies between a small float64 matrix of the host and the device.
at::Tensor to_tensor(const Eigen::MatrixXd& matrix, at::TensorOptions options);
Eigen::VectorXd to_vector(const at::Tensor& tensor);

}  // namespace basin
