// Against at::conv2d and its own derivatives of every order, which share no formula with ours past the first.
#include "models/layers/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/seed.h"

namespace basin {
namespace {

using Tensors = std::vector<at::Tensor>;
using Layer = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b)>;

struct ConvolutionCase {
  int64_t kernel, stride, padding;
  bool bias, leaf_images;  // leaf_images: x needs no gradient, as in a first layer
};

class ConvolutionTest : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  static Layer ours() {
    return [](const auto& x, const auto& w, const auto& b) {
      return convolution(x, w, b, GetParam().stride, GetParam().padding);
    };
  }
  static Layer reference() {
    return [](const auto& x, const auto& w, const auto& b) {
      return at::conv2d(x, w, b, GetParam().stride, GetParam().padding);
    };
  }

  /// x, w and, where there is one, b.
  static Tensors inputs(at::ScalarType type) {
    at::Generator generator = make_generator(3);
    const auto draw = [&](std::vector<int64_t> sizes) {
      return at::randn(sizes, generator, at::kDouble).to(type);
    };
    const int64_t k = GetParam().kernel;
    Tensors all{draw({4, 3, 7, 6}).contiguous(at::MemoryFormat::ChannelsLast), draw({5, 3, k, k})};
    if (GetParam().bias) all.push_back(draw({5}));
    for (size_t i = GetParam().leaf_images ? 1 : 0; i < all.size(); ++i) all[i].requires_grad_(true);
    return all;
  }

  static Tensors differentiable(const Tensors& all) {
    return {all.begin() + (GetParam().leaf_images ? 1 : 0), all.end()};
  }

  /// A scalar whose derivatives of all orders by x, w and b are not 0.
  static at::Tensor scalar(const Layer& layer, const Tensors& in) {
    const at::Tensor y = layer(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor());
    return at::sin(y).sum();
  }

  /// The first `order` derivatives, each along a fixed direction but the last.
  static Tensors derivatives(const Layer& layer, const Tensors& in, int order) {
    at::Tensor value = scalar(layer, in);
    Tensors gradient;
    for (int i = 0; i < order; ++i) {
      gradient = torch::autograd::grad({value}, differentiable(in), {}, /*retain_graph=*/true,
                                       /*create_graph=*/i + 1 < order);
      at::Generator generator = make_generator(10 + i);
      if (i + 1 == order) break;
      value = at::zeros({}, in[0].options());
      for (const at::Tensor& g : gradient) {
        const at::Tensor direction = at::randn(g.sizes(), generator, at::kDouble);
        value = value + (g * direction.to(g.scalar_type())).sum();
      }
    }
    return gradient;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTest,
    ::testing::Values(ConvolutionCase{3, 1, 1, true, false}, ConvolutionCase{3, 2, 1, false, false},
                      ConvolutionCase{5, 1, 2, true, true}, ConvolutionCase{1, 1, 0, false, false},
                      ConvolutionCase{2, 2, 0, true, false}, ConvolutionCase{3, 2, 0, true, true}));

TEST_P(ConvolutionTest, ValueAndGradientHaveTheSameBits) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const Tensors in = inputs(type);
    EXPECT_TRUE(at::equal(scalar(ours(), in), scalar(reference(), in)));
    const Tensors a = derivatives(ours(), in, 1), b = derivatives(reference(), in, 1);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
  }
}

TEST_P(ConvolutionTest, SecondAndThirdDerivativesAreThoseOfAten) {
  const Tensors in = inputs(at::kDouble);
  for (const int order : {2, 3}) {
    const Tensors a = derivatives(ours(), in, order), b = derivatives(reference(), in, order);
    for (size_t i = 0; i < a.size(); ++i) {
      // float64, sums of some hundred terms of order 10 to 1,000.
      EXPECT_TRUE(at::allclose(a[i], b[i], 1e-10, 1e-10)) << "order " << order << ", input " << i;
      EXPECT_GT(a[i].abs().max().item<double>(), 0.1);
    }
  }
}

// A first layer with frozen weights: the bias alone has a gradient, which oneDNN (float32) doesn't compute alone.
TEST(ConvolutionOfFrozenWeights, HasTheGradientOfItsBias) {
  at::Generator generator = make_generator(3);
  for (const auto type : {at::kDouble, at::kFloat}) {
    const at::Tensor x = at::randn({4, 3, 7, 6}, generator, type).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor w = at::randn({5, 3, 2, 2}, generator, type);
    const at::Tensor b = at::randn({5}, generator, type).requires_grad_(true);
    const at::Tensor h = at::randn({4, 5, 6, 5}, generator, type);
    const at::Tensor y = convolution(x, w, b, 1, 0);
    const at::Tensor gradient = torch::autograd::grad({(y * h).sum()}, {b})[0];
    // Sums of 120 numbers of order one.
    EXPECT_TRUE(at::allclose(gradient, h.sum({0, 2, 3}), 1e-5, type == at::kDouble ? 1e-13 : 1e-4));
  }
}

}  // namespace
}  // namespace basin
