#include "hessian/krylov_basis.h"

#include <ATen/ATen.h>

namespace basin {
namespace {

constexpr int64_t kStripe =
    1 << 18;  // columns per pass of compress(): a stripe of 100 rows is 100 MB in float32

}  // namespace

double dot64(const at::Tensor& x, const at::Tensor& y) {
  return x.to(at::kDouble).dot(y.to(at::kDouble)).item<double>();
}

at::Tensor to_tensor(const Eigen::MatrixXd& matrix, at::TensorOptions options) {
  // Eigen's columns are the rows of the tensor.
  const at::Tensor transposed =
      at::from_blob(const_cast<double*>(matrix.data()), {matrix.cols(), matrix.rows()}, at::kDouble);
  // Converted here: of a copy that changes both type and device torch reports two (tests/hessian/gpu_test.cpp counts them).
  return transposed.to(c10::typeMetaToScalarType(options.dtype()), /*non_blocking=*/false, /*copy=*/true)
      .to(options)
      .t();
}

Eigen::VectorXd to_vector(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU).to(at::kDouble).contiguous();
  return Eigen::Map<const Eigen::VectorXd>(host.data_ptr<double>(), host.numel());
}

KrylovBasis::KrylovBasis(int64_t capacity, const LinearOperator& op, bool keep_products)
    : n_(op.size()),
      ranks_(n_ >= kDividedFrom ? op.ranks() : RankGroup::alone()),
      columns_(ranks_.share(n_)) {
  const auto options = at::TensorOptions(op.dtype()).device(op.device());
  vectors_ = at::empty({capacity, columns_.count()}, options);
  products_ = at::empty({keep_products ? capacity : 0, columns_.count()}, options);
}

at::Tensor KrylovBasis::part(const at::Tensor& x) const {
  return x.narrow(-1, columns_.first, columns_.count());
}

// Every other rank adds zeros: nothing is rounded.
at::Tensor KrylovBasis::whole(const at::Tensor& part) const {
  if (!is_divided()) return part;
  at::Tensor all = at::zeros({part.size(0), n_}, part.options());
  this->part(all).copy_(part);
  ranks_.sum(all);
  return all;
}

void KrylovBasis::append(const at::Tensor& v, const at::Tensor& w) {
  vectors_[size_].copy_(part(v));
  if (w.defined()) products_[size_].copy_(part(w));
  ++size_;
}

Eigen::VectorXd KrylovBasis::project_out(at::Tensor& x) const {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(size_);
  if (size_ == 0) return sum;
  const at::Tensor v = vectors_.narrow(0, 0, size_);
  at::Tensor mine = part(x), coefficients;
  for (int pass = 0; pass < 2; ++pass) {
    const at::Tensor c = at::mv(v, mine);
    ranks_.sum(c);
    mine.addmv_(v.t(), c, /*beta=*/1, /*alpha=*/-1);
    coefficients = coefficients.defined() ? coefficients + c : c;
  }
  if (is_divided()) x.copy_(whole(mine.unsqueeze(0))[0]);
  return to_vector(coefficients);
}

Eigen::VectorXd KrylovBasis::products_times(const at::Tensor& x) const {
  const at::Tensor found = at::mv(products_.narrow(0, 0, size_), part(x));
  ranks_.sum(found);
  return to_vector(found);
}

at::Tensor KrylovBasis::combine(const at::Tensor& rows, const Eigen::MatrixXd& y) const {
  return whole(at::mm(to_tensor(y, rows.options()).t(), rows.narrow(0, 0, size_)));
}

void KrylovBasis::compress(const Eigen::MatrixXd& y) {
  const int64_t n = vectors_.size(1), kept = y.cols();
  const at::Tensor rotation = to_tensor(y, vectors_.options()).t().contiguous();
  for (at::Tensor* rows : {&vectors_, &products_}) {
    for (int64_t first = 0; first < n; first += kStripe) {
      const int64_t width = std::min(kStripe, n - first);
      const at::Tensor rotated = at::mm(rotation, rows->narrow(0, 0, size_).narrow(1, first, width));
      rows->narrow(0, 0, kept).narrow(1, first, width).copy_(rotated);
    }
  }
  size_ = kept;
}

}  // namespace basin
