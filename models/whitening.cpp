#include "models/whitening.h"

#include "models/layers/convolution.h"

namespace basin {
namespace {

constexpr int64_t kImagesAtOnce = 500;  // their patches take some ten MiB

/// The mean of p p^T over all patches p of the images, float64 [d, d].
at::Tensor second_moment(const at::Tensor& images, int64_t kernel) {
  const int64_t d = images.size(1) * kernel * kernel;
  at::Tensor sum = at::zeros({d, d}, at::kDouble);
  int64_t patches = 0;
  for (const at::Tensor& some : images.split(kImagesAtOnce)) {
    const at::Tensor columns =
        at::im2col(some.to(at::kDouble).contiguous(), {kernel, kernel}, /*dilation=*/{1, 1},
                   /*padding=*/{0, 0}, /*stride=*/{1, 1});
    const at::Tensor rows = columns.transpose(0, 1).reshape({d, -1});
    sum.addmm_(rows, rows.t());
    patches += rows.size(1);
  }
  return sum.div_(static_cast<double>(patches));
}

}  // namespace

WhiteningConv2d::WhiteningConv2d(const Builder& builder, const std::string& name, int64_t channels,
                                 int64_t kernel, double eps)
    : eps_(eps) {
  const int64_t d = channels * kernel * kernel;
  weight_ =
      builder.model.add_buffer(name, "weight", at::empty({2 * d, channels, kernel, kernel}, at::kFloat));
  bias_ = builder.model.add_parameter(name, "bias", ParameterKind::bias, at::zeros({2 * d}, at::kFloat));
  set_filters(at::ones({d}, at::kDouble), at::eye(d, at::kDouble));
}

void WhiteningConv2d::fit(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const auto [values, vectors] = at::linalg_eigh(second_moment(images, weight_.size(2)));
  set_filters(values.flip(0).clamp_min(0), vectors.flip(1));  // clamped: 0 up to rounding
}

/// Eigenvectors are columns, whose signs LAPACK leaves to rounding: the largest component is made positive.
void WhiteningConv2d::set_filters(const at::Tensor& eigenvalues, const at::Tensor& eigenvectors) {
  const at::Tensor largest = eigenvectors.abs().argmax(0, /*keepdim=*/true);
  const at::Tensor turned = eigenvectors * eigenvectors.gather(0, largest).sign();
  const at::Tensor filters = turned.t() / at::sqrt(eigenvalues + eps_).unsqueeze(1);
  weight_.copy_(at::cat({filters, -filters}).view(weight_.sizes()));
}

at::Tensor WhiteningConv2d::operator()(const at::Tensor& x) const {
  return convolution(x, weight_, bias_, /*stride=*/1, /*padding=*/0);
}

}  // namespace basin
