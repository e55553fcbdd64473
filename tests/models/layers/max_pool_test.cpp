// Against at::max_pool2d and at::relu with their own derivatives.
#include "models/layers/max_pool.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/seed.h"

namespace basin {
namespace {

using Layer = std::function<at::Tensor(const at::Tensor&)>;

struct Pair {
  Layer ours, reference;
};

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all{
      {[](const auto& x) { return max_pool(x, 2, 2); },
       [](const auto& x) { return at::max_pool2d(x, 2, 2); }},
      {rectified_max_pool, [](const auto& x) { return at::relu(at::max_pool2d(x, 2, 2)); }}};
  return all;
}

// With many equal values and zeros, where the choice of place shows in the gradient.
at::Tensor images(std::vector<int64_t> sizes, at::ScalarType type) {
  const at::Tensor x = at::randn(sizes, make_generator(5), at::kDouble).mul(2).round().div(2);
  return x.to(type).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true);
}

at::Tensor direction(const at::Tensor& like, int64_t seed) {
  return at::randn(like.sizes(), make_generator(static_cast<uint64_t>(seed)), at::kDouble)
      .to(like.scalar_type());
}

// y, the gradient of <sin y, d>, and the derivative of <that gradient, e> by d and by x.
std::vector<at::Tensor> derivatives(const Layer& layer, const at::Tensor& x) {
  const at::Tensor y = layer(x), d = direction(y.detach(), 1).requires_grad_(true);
  const at::Tensor gradient = torch::autograd::grad({(at::sin(y) * d).sum()}, {x}, {}, /*retain_graph=*/true,
                                                    /*create_graph=*/true)[0];
  std::vector<at::Tensor> all{y, gradient};
  for (const at::Tensor& second :
       torch::autograd::grad({(at::sin(gradient) * direction(x.detach(), 2)).sum()}, {x, d}))
    all.push_back(second);
  return all;
}

const std::vector<std::vector<int64_t>> kSizes{
    {3, 5, 6, 4}, {2, 16, 8, 8}, {40, 7, 16, 12}, {1, 1, 2, 2}, {2, 3, 7, 5}};

TEST(MaxPool, HasTheBitsOfAtensAndItsDerivatives) {
  for (const Pair& pair : pairs()) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      for (const auto& sizes : kSizes) {
        const at::Tensor x = images(sizes, type);
        const auto ours = derivatives(pair.ours, x), reference = derivatives(pair.reference, x);
        for (size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(at::equal(ours[i], reference[i])) << i << " of " << x.sizes();
      }
    }
  }
}

TEST(MaxPool, TakesImagesInAnyLayout) {
  const at::Tensor x = images({2, 16, 8, 8}, at::kFloat).detach().contiguous().requires_grad_(true);
  for (const Pair& pair : pairs()) {
    const auto ours = derivatives(pair.ours, x), reference = derivatives(pair.reference, x);
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::equal(ours[i], reference[i])) << i;
  }
}

TEST(MaxPool, PassesNanAndInfinity) {
  at::Tensor x = images({1, 3, 4, 4}, at::kFloat).detach();
  x[0][0][1][1] = NAN;
  x[0][1][0][2] = INFINITY;
  x[0][2].slice(0, 0, 2).fill_(-INFINITY);
  for (const Pair& pair : pairs()) {
    const at::Tensor ours = pair.ours(x), reference = pair.reference(x);
    EXPECT_TRUE(at::equal(at::isnan(ours), at::isnan(reference)));
    EXPECT_TRUE(at::equal(at::nan_to_num(ours), at::nan_to_num(reference)));
    EXPECT_TRUE(at::isnan(ours).any().item<bool>());
  }
}

TEST(MaxPool, ThreadsChangeNoBit) {
  const int before = at::get_num_threads();
  const at::Tensor x = images({40, 7, 16, 12}, at::kFloat);
  at::set_num_threads(1);
  const auto one = derivatives(rectified_max_pool, x);
  at::set_num_threads(3);
  const auto three = derivatives(rectified_max_pool, x);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

}  // namespace
}  // namespace basin
