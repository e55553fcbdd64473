// Forward passes in bfloat16 against float64 arithmetic on rounded arguments.
#include "models/layers/autocast.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/math/wide_registers.h"
#include "core/seed.h"
#include "models/layers/convolution.h"
#include "models/layers/layer_calls.h"
#include "models/loss.h"
#include "models/registry.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

at::Tensor random(at::IntArrayRef sizes, uint64_t seed) {
  return at::empty(sizes, at::kFloat).normal_(0, 1, make_generator(seed));
}

at::Tensor rounded(const at::Tensor& x) { return x.detach().to(at::kBFloat16).to(at::kDouble); }

// A result is rounded to 8 bits once more, from sums in float32: half a unit in the last place is 2^-9 of the
// value, and of the largest where a small result is what large terms leave. Without oneDNN's loops, which need
// AVX-512, torch rounds each of two images' part of a sum as well, by 2^-9 of what may be the largest.
void expect_rounded(const at::Tensor& found, const at::Tensor& exact) {
  const at::Tensor error = (found.detach().to(at::kDouble) - exact).abs();
  const double of_largest = wide::widest() == 512 ? 1e-4 : 2 * std::pow(2., -9);
  const at::Tensor allowed = exact.abs() / 256 + exact.abs().max() * of_largest;
  EXPECT_TRUE(error.le(allowed).all().item<bool>()) << (error / allowed).max().item<double>();
  EXPECT_TRUE(at::equal(found.to(at::kBFloat16).to(found.scalar_type()), found)) << "isn't rounded";
}

TEST(Autocast, ConvolutionAndItsGradientAreThoseOfRoundedArguments) {
  const at::Tensor x = random({2, 3, 6, 6}, 1).requires_grad_(), w = random({4, 3, 3, 3}, 2).requires_grad_(),
                   b = random({4}, 3).requires_grad_(), h = rounded(random({2, 4, 6, 6}, 4));
  at::Tensor y;
  {
    const Autocast on(true, at::kCPU);
    y = convolution(x, w, b, 1, 1);
  }
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  (y.to(at::kDouble) * h).sum().backward();

  const at::Tensor x64 = rounded(x).requires_grad_(), w64 = rounded(w).requires_grad_(),
                   b64 = rounded(b).requires_grad_();
  const at::Tensor y64 = at::conv2d(x64, w64, b64, {1, 1}, {1, 1});
  (y64 * h).sum().backward();
  expect_rounded(y, y64.detach());
  for (const auto& [found, exact] : {std::pair{x, x64}, {w, w64}, {b, b64}}) {
    EXPECT_EQ(found.grad().scalar_type(), at::kFloat);
    expect_rounded(found.grad(), exact.grad());
  }
}

at::Tensor gradient(Model& model, const testing::TinyBatch& batch, bool autocast, LossKind loss) {
  at::Tensor logits;
  {
    const Autocast on(autocast, at::kCPU);
    logits = model.forward(batch.images).to(at::kFloat);
  }
  std::vector<at::Tensor> weights, flat;
  for (const ParameterInfo& p : model.parameter_table())
    if (p.tensor.requires_grad()) weights.push_back(p.tensor);
  const auto gradients = torch::autograd::grad({example_losses(loss, logits, batch.labels).mean()}, weights);
  for (const at::Tensor& g : gradients) flat.push_back(g.reshape({-1}));
  return at::cat(flat);
}

double relative(const at::Tensor& found, const at::Tensor& exact) {
  return ((found - exact).norm() / exact.norm()).item<double>();
}

void round_weights(Model& model) {
  const at::NoGradGuard no_grad;
  for (const ParameterInfo& p : model.parameter_table())
    at::Tensor(p.tensor).copy_(p.tensor.to(at::kBFloat16));
}

/// Matrix products or convolutions, which autocast rounds.
bool has_products(Model& model, const testing::TinyBatch& batch) {
  const LayerCalls noted;
  model.forward(batch.images);
  return std::any_of(noted.list().begin(), noted.list().end(), [](const LayerCall& call) {
    return call.kind == LayerCall::Kind::convolution || call.kind == LayerCall::Kind::linear;
  });
}

// How much a rounding changes a gradient is the network's own matter (a pool of two equal pixels, a ghost
// batch of small variance): the measure is what rounding the weights alone does, in float32. Activations are
// rounded as well, on the way there and back, in up to 20 layers, at random.
TEST(Autocast, EveryModelsGradientIsThatOfFloat32ToRoundings) {
  for (const std::string& name : testing::own_models()) {
    SCOPED_TRACE(name);
    const auto model = testing::tiny_model(name, {}, 1, at::kFloat);
    model->eval();  // no dropout
    model->set_norm_mode(NormMode::ghost_batch, 16);
    const auto batch = testing::tiny_batch(testing::tiny_input_shape(name), 32, 1, at::kFloat);
    const LossKind loss = testing::tiny_loss(name);
    const at::Tensor exact = gradient(*model, batch, false, loss),
                     found = gradient(*model, batch, true, loss);
    EXPECT_EQ(found.scalar_type(), at::kFloat);
    round_weights(*model);
    const double one_rounding = relative(gradient(*model, batch, false, loss), exact);
    ASSERT_LT(one_rounding, 0.2);
    EXPECT_LE(relative(found, exact), 20 * one_rounding);
    if (has_products(*model, batch)) {
      EXPECT_GT(relative(found, exact), one_rounding / 4);
    }
  }
}

TEST(Autocast, EndsWithItsScope) {
  const auto model = testing::tiny_model("small_cnn", {}, 1, at::kFloat);
  const auto batch = testing::tiny_batch(testing::tiny_image_shape(), 4, 1, at::kFloat);
  const at::Tensor before = model->forward(batch.images);
  {
    const Autocast on(true, at::kCPU);
    EXPECT_FALSE(at::equal(model->forward(batch.images).to(at::kFloat), before));
  }
  const Autocast off(false, at::kCPU);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_TRUE(at::equal(model->forward(batch.images), before));
}

}  // namespace
}  // namespace basin
