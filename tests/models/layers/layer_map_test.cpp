#include "models/layers/layer_map.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/scoped_norm_mode.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

// Convolutions and a linear layer, in the order of the forward pass, with what is folded into them.
TEST(LayerMap, LayersComputeWithWhatItReturns) {
  const auto model = testing::tiny_model("small_cnn", {"norm=batch"});
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_image_shape(), 5);
  const ScopedNormMode folded(*model, NormMode::folded);
  const at::Tensor plain = model->forward(batch.images);
  std::vector<int64_t> calls, dimensions;
  at::Tensor doubled;
  {
    LayerMap map([&](LayerMap::Arguments layer, int64_t call) {
      calls.push_back(call);
      dimensions.push_back(layer.weight.dim());
      EXPECT_TRUE(layer.bias.defined());
      if (call == 2) {  // the last: twice the logits
        layer.weight = layer.weight * 2;
        layer.bias = layer.bias * 2;
      }
      return layer;
    });
    doubled = model->forward(batch.images);
  }
  EXPECT_EQ(calls, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(dimensions, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_TRUE(at::equal(doubled, plain * 2));  // a power of two: exact
  EXPECT_FALSE(doubled.requires_grad());
  EXPECT_EQ(LayerMap::active(), nullptr);
  EXPECT_TRUE(at::equal(model->forward(batch.images), plain));
}

TEST(LayerMap, AnInnerOneCountsAlone) {
  const auto model = testing::tiny_mlp();
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 2);
  int outer = 0, inner = 0;
  LayerMap first([&](LayerMap::Arguments layer, int64_t) {
    ++outer;
    return layer;
  });
  {
    LayerMap second([&](LayerMap::Arguments layer, int64_t) {
      ++inner;
      return layer;
    });
    model->forward(batch.images);
  }
  EXPECT_EQ(outer, 0);
  EXPECT_EQ(inner, 3);
  model->forward(batch.images);
  EXPECT_EQ(outer, 3);
}

TEST(ScopedNormMode, PutsTheModeAndTheGhostBatchBack) {
  const auto model = testing::tiny_model("small_cnn", {"norm=batch"});
  model->set_norm_mode(NormMode::ghost_batch, 4);
  {
    const ScopedNormMode folded(*model, NormMode::folded);
    EXPECT_EQ(model->norm_mode(), NormMode::folded);
  }
  EXPECT_EQ(model->norm_mode(), NormMode::ghost_batch);
  EXPECT_EQ(model->ghost_batch(), 4);
}

}  // namespace
}  // namespace basin
