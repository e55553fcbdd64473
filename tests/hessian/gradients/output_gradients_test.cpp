// Against the derivative by a shift of each output, of the same function without layers.
#include "hessian/gradients/output_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "core/seed.h"

namespace basin {
namespace {

constexpr int64_t kLayers = 5;

at::Tensor random_matrix(uint64_t seed, at::IntArrayRef sizes) {
  return at::randn(sizes, make_generator(seed), at::kDouble);
}

using Layer = std::function<at::Tensor(int64_t which, const at::Tensor& x)>;

/// Outputs that others depend on, side by side, worked on in place, and one that nothing uses.
at::Tensor loss_of(const Layer& layer) {
  const at::Tensor x = random_matrix(1, {5, 3});
  const at::Tensor first = layer(0, x).relu_();
  const at::Tensor left = layer(1, first), right = layer(2, first), beside = layer(3, x);
  layer(4, first);
  return (left * right.sigmoid() + first + beside).pow(3).sum();
}

/// The gradient by one output, as that by a shift of it.
at::Tensor by_shift(int64_t which) {
  const at::Tensor shift = at::zeros({5, 3}, at::kDouble).requires_grad_(true);
  loss_of([&](int64_t layer, const at::Tensor& x) {
    const at::Tensor y = x.mm(random_matrix(2 + layer, {3, 3}).t());
    return layer == which ? y + shift : y;
  }).backward();
  return shift.grad();
}

TEST(OutputGradients, AreHandedOverOnceEach) {
  std::vector<at::Tensor> weights;
  for (int64_t i = 0; i < kLayers; ++i) weights.push_back(random_matrix(2 + i, {3, 3}).requires_grad_(true));
  at::Tensor loss;
  std::vector<LayerCall> calls;
  {
    const LayerCalls noted;
    loss = loss_of([&](int64_t layer, const at::Tensor& x) { return linear_map(x, weights[layer], {}); });
    calls = noted.list();
  }
  ASSERT_EQ(calls.size(), kLayers);
  std::map<size_t, at::Tensor> found;
  for_each_output_gradient(loss, calls, [&](size_t call, const at::Tensor& gradient) {
    EXPECT_TRUE(found.emplace(call, gradient.clone()).second) << call;
    calls[call].x.reset();
  });
  EXPECT_EQ(found.size(), 4u) << "nothing uses the fifth";
  // The same sums in another order.
  for (const auto& [call, gradient] : found)
    EXPECT_TRUE(at::allclose(gradient, by_shift(static_cast<int64_t>(call)), 1e-13, 1e-13)) << call;
  for (const at::Tensor& weight : weights) EXPECT_FALSE(weight.grad().defined());
}

TEST(OutputGradients, OfNoCallsAreNone) {
  const at::Tensor loss = at::ones({1}, at::kDouble).requires_grad_(true).sum();
  for_each_output_gradient(loss, {}, [](size_t, const at::Tensor&) { FAIL(); });
}

}  // namespace
}  // namespace basin
