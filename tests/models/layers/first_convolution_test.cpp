// Against at::conv2d, at::max_pool2d and at::relu with their own derivatives.
#include "models/layers/first_convolution.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/math/wide_registers.h"
#include "core/seed.h"
#include "models/layers/first_convolution_loops.h"
#include "tests/support/does_not_apply.h"

namespace basin {
namespace {

struct FirstConvolutionCase {
  int64_t images, in, height, width, out;
};

std::ostream& operator<<(std::ostream& out, const FirstConvolutionCase& c) {
  return out << c.images << "x" << c.in << "x" << c.height << "x" << c.width << "to" << c.out;
}

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, make_generator(seed), at::kDouble).to(at::kFloat);
}

struct Arguments {
  at::Tensor x, w, b;
  explicit Arguments(const FirstConvolutionCase& c)
      : x(normal({c.images, c.in, c.height, c.width}, 1).contiguous(at::MemoryFormat::ChannelsLast)),
        w(normal({c.out, c.in, 3, 3}, 2).requires_grad_(true)),
        b(normal({c.out}, 3).requires_grad_(true)) {}
};

at::Tensor reference(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return at::relu(at::max_pool2d(at::conv2d(x, w, b, 1, 1), 2, 2));
}

using Layer = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

/// y, the gradients by w and b of <sin y, d>, and the derivatives of <those, e> by d, w and b.
std::vector<at::Tensor> derivatives(const Layer& layer, const Arguments& a) {
  const at::Tensor y = layer(a.x, a.w, a.b), d = normal(y.sizes(), 4).requires_grad_(true);
  std::vector<at::Tensor> all{y};
  const auto first = torch::autograd::grad({(at::sin(y) * d).sum()}, {a.w, a.b}, {}, /*retain_graph=*/true,
                                           /*create_graph=*/true);
  all.insert(all.end(), first.begin(), first.end());
  const at::Tensor along = (first[0] * normal(first[0].sizes(), 5)).sum() +
                           (at::sin(first[1]) * normal(first[1].sizes(), 6)).sum();
  for (const at::Tensor& second : torch::autograd::grad({along}, {d, a.w, a.b})) all.push_back(second);
  return all;
}

class FirstConvolutionOf : public ::testing::TestWithParam<FirstConvolutionCase> {};
INSTANTIATE_TEST_SUITE_P(
    Sizes, FirstConvolutionOf,
    ::testing::Values(FirstConvolutionCase{1, 1, 2, 2, 8}, FirstConvolutionCase{3, 3, 8, 6, 16},
                      FirstConvolutionCase{19, 2, 10, 14, 24}, FirstConvolutionCase{17, 4, 4, 4, 48},
                      FirstConvolutionCase{9, 3, 32, 32, 16}, FirstConvolutionCase{2, 3, 6, 6, 12}));

// Sums of up to 36 products in another order for y, of up to 9,216 for the gradients, of as many of these for the second ones: 4e-5
// of the largest entry. Places are of values that differ by more than that rounding but for one in 1e5: none here.
TEST_P(FirstConvolutionOf, HasTheValuesAndDerivativesOfAtens) {
  const Arguments a(GetParam());
  const auto ours = derivatives(rectified_pooled_convolution, a), theirs = derivatives(reference, a);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].sizes(), theirs[i].sizes()) << i;
    EXPECT_LT((ours[i] - theirs[i]).abs().max().item<float>(),
              4e-5F * (1 + theirs[i].abs().max().item<float>()))
        << i;
  }
}

TEST_P(FirstConvolutionOf, HasTheSameBitsWithAnyNumberOfThreads) {
  if (GetParam().out % 8 != 0) DOES_NOT_APPLY() << "takes ATen's";
  const Arguments a(GetParam());
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = derivatives(rectified_pooled_convolution, a);
  at::set_num_threads(3);
  const auto three = derivatives(rectified_pooled_convolution, a);
  at::set_num_threads(before);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST(FirstConvolution, PassesNaNAndDropsWhatIsNotPositive) {
  Arguments a({1, 3, 4, 4, 16});
  a.x[0][1][0][0] = NAN;
  const at::Tensor y = rectified_pooled_convolution(a.x, a.w, a.b);
  EXPECT_TRUE(y[0].select(1, 0).select(1, 0).isnan().all().item<bool>()) << "its square sees it";
  EXPECT_FALSE(y[0].select(1, 1).select(1, 1).isnan().any().item<bool>()) << "too far away";
  const at::Tensor low =
      rectified_pooled_convolution(a.x.nan_to_num(), a.w.detach(), at::full({16}, -1e3, at::kFloat));
  EXPECT_EQ(low.abs().max().item<float>(), 0);
}

TEST(FirstConvolution, GivesTheGradientByImagesWhereOneIsWanted) {
  const Arguments a({3, 3, 8, 6, 16});
  const at::Tensor x = a.x.detach().clone().requires_grad_(true);
  const at::Tensor ours =
      torch::autograd::grad({at::sin(rectified_pooled_convolution(x, a.w, a.b)).sum()}, {x})[0];
  const at::Tensor theirs = torch::autograd::grad({at::sin(reference(x, a.w, a.b)).sum()}, {x})[0];
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-5, 1e-5));
}

// Narrow registers where wide ones are chosen: the same sums, each in the same order.
TEST(FirstConvolution, HasTheSameBitsInRegistersOfBothWidths) {
  if (!wide::fuses() || wide::widest() < 512) GTEST_SKIP() << "no AVX-512 here";
  const FirstConvolutionShape shape{6, 8, 32};
  const at::Tensor x = normal({6, 8, 3}, 1), w = normal({27, 32}, 2), b = normal({32}, 3),
                   h = normal({3, 4, 32}, 4);
  std::vector<std::vector<at::Tensor>> all;
  for (const FirstConvolutionLoops& loops : {first_convolution_avx512(3), first_convolution_avx2(3)}) {
    const at::Tensor y = at::empty({3, 4, 32}), places = at::empty({3, 4, 32}, at::kInt),
                     padded = at::empty({8, 10, 3}), by_w = at::zeros({27, 32}), by_b = at::zeros({32});
    loops.forward(shape, x.const_data_ptr<float>(), w.const_data_ptr<float>(), b.const_data_ptr<float>(),
                  y.mutable_data_ptr<float>(), places.mutable_data_ptr<Place>(),
                  padded.mutable_data_ptr<float>());
    loops.backward(shape, x.const_data_ptr<float>(), h.const_data_ptr<float>(),
                   places.const_data_ptr<Place>(), by_w.mutable_data_ptr<float>(),
                   by_b.mutable_data_ptr<float>(), padded.mutable_data_ptr<float>());
    all.push_back({y, places, by_w, by_b});
  }
  for (size_t i = 0; i < all[0].size(); ++i) EXPECT_TRUE(at::equal(all[0][i], all[1][i])) << i;
}

}  // namespace
}  // namespace basin
