// The whitening filters against patches taken out one by one, in plain loops.
#include "models/whitening.h"

#include <gtest/gtest.h>

#include "core/seed.h"
#include "models/model.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

constexpr int64_t kChannels = 2, kKernel = 2, kPatch = kChannels * kKernel * kKernel;

// A model that is one whitening convolution.
struct WhiteningOnly : Model {
  explicit WhiteningOnly(double eps, at::Generator generator = make_generator(1))
      : layer(Builder{*this, generator}, "whiten", kChannels, kKernel, eps) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) override { return layer(x); }
  at::Tensor filters() const { return buffer_table().front().second.view({2 * kPatch, kPatch}); }
  WhiteningConv2d layer;
};

// Neighbouring pixels and colours of these go together, as in photographs; more images than are taken at
// once.
at::Tensor correlated_images(int64_t count) {
  at::Generator generator = make_generator(4);
  const at::Tensor noise = at::empty({count, kChannels, 6, 6}, at::kDouble).normal_(0.2, 1, generator);
  const at::Tensor blurred = noise.narrow(2, 0, 5) + 0.8 * noise.narrow(2, 1, 5);
  const at::Tensor smooth = blurred.narrow(3, 0, 5) + 0.6 * blurred.narrow(3, 1, 5);
  return smooth + 0.5 * smooth.flip(1);
}

// Mean of (a p)(b p) over all patches p, a and b rows of the identity.
at::Tensor second_moment(const at::Tensor& images) {
  const auto x = images.accessor<double, 4>();
  at::Tensor sum = at::zeros({kPatch, kPatch}, at::kDouble);
  auto s = sum.accessor<double, 2>();
  int64_t patches = 0;
  for (int64_t n = 0; n < images.size(0); ++n)
    for (int64_t top = 0; top + kKernel <= images.size(2); ++top)
      for (int64_t left = 0; left + kKernel <= images.size(3); ++left, ++patches) {
        double p[kPatch];
        for (int64_t i = 0; i < kPatch; ++i)
          p[i] = x[n][i / (kKernel * kKernel)][top + i / kKernel % kKernel][left + i % kKernel];
        for (int64_t i = 0; i < kPatch; ++i)
          for (int64_t j = 0; j < kPatch; ++j) s[i][j] += p[i] * p[j];
      }
  return sum / static_cast<double>(patches);
}

TEST(Whitening, GivesPatchesTheIdentityAsSecondMoment) {
  const at::NoGradGuard no_grad;
  WhiteningOnly model(/*eps=*/1e-14);
  const at::Tensor images = correlated_images(601);
  model.layer.fit(images);
  const at::Tensor y = model.forward(images);
  const at::Tensor rows = y.transpose(0, 1).reshape({2 * kPatch, -1});
  const at::Tensor moment = rows.mm(rows.t()) / static_cast<double>(rows.size(1));
  const at::Tensor one = at::eye(kPatch, at::kDouble);
  // The smallest eigenvalue is above 1e-2, so eps and rounding change entries by 1e-12; the other half has
  // the other sign.
  EXPECT_TRUE(at::allclose(moment.narrow(0, 0, kPatch).narrow(1, 0, kPatch), one, 0, 1e-10)) << moment;
  EXPECT_TRUE(at::allclose(moment.narrow(0, 0, kPatch).narrow(1, kPatch, kPatch), -one, 0, 1e-10));
  EXPECT_TRUE(at::equal(model.filters().narrow(0, 0, kPatch), -model.filters().narrow(0, kPatch, kPatch)));
  // Else rounding would choose which half is which.
  for (int64_t i = 0; i < kPatch; ++i) {
    const at::Tensor filter = model.filters()[i];
    EXPECT_EQ(filter.max().item<double>(), filter.abs().max().item<double>()) << i;
  }
}

// With a large eps every factor l / (l + eps) shows: S w_i = l_i w_i, |w_i|^2 = 1 / (l_i + eps), l
// descending.
TEST(Whitening, FiltersAreEigenvectorsDividedByTheRootOfEigenvaluePlusEps) {
  const at::NoGradGuard no_grad;
  const double eps = 0.5;
  WhiteningOnly model(eps);
  const at::Tensor images = correlated_images(40), moment = second_moment(images);
  model.layer.fit(images);
  double previous = INFINITY, trace = 0;
  for (int64_t i = 0; i < kPatch; ++i) {
    const at::Tensor w = model.filters()[i];
    const double square = w.dot(w).item<double>(), value = 1 / square - eps;
    EXPECT_TRUE(at::allclose(moment.mv(w), value * w, 1e-11, 1e-11)) << i;  // float64, sums of 640 patches
    EXPECT_LT(value, previous);
    previous = value;
    trace += value;
  }
  EXPECT_NEAR(trace, moment.trace().item<double>(), 1e-10);
  EXPECT_GT(previous, 0);
}

TEST(Whitening, StartsAsThatOfWhiteNoiseWithABiasOfZero) {
  const WhiteningOnly model(/*eps=*/0.21);
  EXPECT_TRUE(
      at::allclose(model.filters().narrow(0, 0, kPatch), at::eye(kPatch, at::kDouble) / 1.1, 1e-6, 0));
  EXPECT_TRUE(at::equal(model.parameter_table().front().tensor, at::zeros({2 * kPatch}, at::kDouble)));
  EXPECT_FALSE(model.has_batch_statistics());
}

// A constant image has one direction with signal; the others must come out finite.
TEST(Whitening, OfImagesWithoutVarietyIsFinite) {
  WhiteningOnly model(/*eps=*/1e-4);
  model.layer.fit(at::ones({3, kChannels, 4, 4}, at::kDouble));
  EXPECT_TRUE(model.filters().isfinite().all().item<bool>());
  EXPECT_LE(model.filters().abs().max().item<double>(), 100 * (1 + 1e-12));  // 1 / sqrt(eps)
}

TEST(Airbench, RunningStatisticsAreForgottenWithoutTheWhitening) {
  const auto model = testing::tiny_model("airbench");
  const at::NoGradGuard no_grad;
  for (const auto& [name, buffer] : model->buffer_table()) buffer.fill_(7);
  model->reset_running_statistics();
  for (const auto& [name, buffer] : model->buffer_table()) {
    const double expected = name == "whiten.weight"                         ? 7
                            : name.find("running_var") != std::string::npos ? 1
                                                                            : 0;
    EXPECT_TRUE(buffer.eq(expected).all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace basin
