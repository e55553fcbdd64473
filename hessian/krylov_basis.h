// defines: KrylovBasis, orthonormal vectors and their products on the operator's device.
#pragma once

#include <ATen/core/Tensor.h>

#include <Eigen/Core>
#include <cstdint>

namespace basin {

/// V = [v_1 .. v_m], orthonormal rows, and W = [A v_1 .. A v_m]: 2 m n numbers of the operator's type on its
/// device. Small matrices (m by m) live on the host in float64.
///
/// Keeping W buys true residuals W y - theta V y of every Ritz pair without another product, and makes warm
/// starts and restarts from any vectors possible; it costs as much memory as V.
class KrylovBasis {
 public:
  /// Without products only vectors are kept, and append() takes no second argument.
  KrylovBasis(int64_t capacity, int64_t n, at::TensorOptions options, bool keep_products = true);

  int64_t size() const { return size_; }
  int64_t capacity() const { return vectors_.size(0); }
  bool full() const { return size_ == capacity(); }
  at::Tensor vectors() const { return vectors_.narrow(0, 0, size_); }
  at::Tensor products() const { return products_.narrow(0, 0, size_); }

  /// v of unit length, orthogonal to the others; w = A v.
  void append(const at::Tensor& v, const at::Tensor& w = {});
  /// x -= V^T (V x), twice, which is enough (Giraud et al., Numer. Math. 101, 2005, theorem 2). Returns V x
  /// of before, summed over both passes.
  Eigen::VectorXd project_out(at::Tensor& x) const;
  /// V^T y and W^T y for coefficients y [size, k]: k rows each.
  at::Tensor combine_vectors(const Eigen::MatrixXd& y) const { return combine(vectors_, y); }
  at::Tensor combine_products(const Eigen::MatrixXd& y) const { return combine(products_, y); }
  /// V <- Y^T V, W <- Y^T W in place, a stripe of columns at a time; y [size, k] with orthonormal columns.
  void compress(const Eigen::MatrixXd& y);

 private:
  at::Tensor combine(const at::Tensor& rows, const Eigen::MatrixXd& y) const;
  at::Tensor vectors_, products_;  // [capacity, n]
  int64_t size_ = 0;
};

/// x . y summed in float64, whatever their type.
double dot64(const at::Tensor& x, const at::Tensor& y);

/// Copies between a small float64 matrix of the host and the device.
at::Tensor to_tensor(const Eigen::MatrixXd& matrix, at::TensorOptions options);
Eigen::VectorXd to_vector(const at::Tensor& tensor);

}  // namespace basin
