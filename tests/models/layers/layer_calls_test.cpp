#include "models/layers/layer_calls.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/registry.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

class LayerCallsTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, LayerCallsTest, ::testing::ValuesIn(testing::own_models()),
                         [](const auto& info) { return info.param; });

// An embedding may be the last layer as well.
TEST_P(LayerCallsTest, HaveEveryParameterOnceAndChangeNothing) {
  const auto model = testing::tiny_model(GetParam());
  model->eval();
  const auto batch = testing::tiny_batch(testing::tiny_input_shape(GetParam()), 4);
  const at::Tensor plain = model->forward(batch.images);
  std::vector<LayerCall> calls;
  {
    const LayerCalls noted;
    EXPECT_EQ(LayerCalls::active(), &noted);
    // Frozen normalisation is one product and sum here: float64 roundings of some twenty layers.
    EXPECT_LT((model->forward(batch.images) - plain).norm().item<double>(),
              1e-12 * plain.norm().item<double>());
    calls = noted.list();
  }
  EXPECT_EQ(LayerCalls::active(), nullptr);
  for (const ParameterInfo& p : model->parameter_table()) {
    const auto has = [&](const LayerCall& c) {
      return p.tensor.is_same(c.weight) || p.tensor.is_same(c.bias);
    };
    const bool tied = std::any_of(calls.begin(), calls.end(), [&](const LayerCall& c) {
      return has(c) && c.kind == LayerCall::Kind::embedding && p.layer == "tokens";
    });
    EXPECT_EQ(std::count_if(calls.begin(), calls.end(), has), tied ? 2 : 1) << p.name;
  }
}

TEST(LayerCalls, ThatNeedNoGradientAreNotKept) {
  const auto model = testing::tiny_model("small_cnn");
  const at::NoGradGuard no_grad;
  const LayerCalls noted;
  model->forward(testing::tiny_batch(testing::tiny_image_shape(), 4).images);
  EXPECT_TRUE(noted.list().empty());
}

TEST(LayerCalls, OneWithinAnotherHasTheCallsOfItsLife) {
  const at::Tensor x = at::ones({2, 3}), w = at::ones({4, 3}).requires_grad_(true);
  const LayerCalls outer;
  linear_map(x, w, {});
  {
    const LayerCalls inner;
    linear_map(x, w, {});
    linear_map(x, w, {});
    EXPECT_EQ(inner.list().size(), 2u);
  }
  linear_map(x, w, {});
  EXPECT_EQ(outer.list().size(), 2u);
}

}  // namespace
}  // namespace basin
