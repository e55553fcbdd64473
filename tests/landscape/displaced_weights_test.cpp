#include "landscape/displaced_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "landscape/normalised_logits.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

TEST(DisplacedWeights, MovesFromTheOriginAndComesBackWithTheSameBits) {
  const auto model = testing::tiny_mlp(1, at::kFloat);
  const ParameterVector vector(model->parameter_table());
  const at::Tensor before = vector.gather();
  {
    const DisplacedWeights weights(vector);
    EXPECT_TRUE(at::equal(weights.origin(), before.to(at::kDouble)));
    const at::Tensor step = at::linspace(-1, 1, vector.size(), at::kDouble) / 3;
    for (int i = 0; i < 2; ++i) {  // from the origin each time, not from where the last step led
      weights.move(step);
      EXPECT_TRUE(at::equal(vector.gather(), (before.to(at::kDouble) + step).to(at::kFloat)));
    }
    weights.put_back();
    EXPECT_TRUE(at::equal(vector.gather(), before));
    weights.move(step);
  }
  EXPECT_TRUE(at::equal(vector.gather(), before));
}

TEST(DisplacedWeights, ComesBackAlsoThroughAnException) {
  const auto model = testing::tiny_mlp();
  const ParameterVector vector(model->parameter_table());
  const at::Tensor before = vector.gather();
  const auto stopped_on_the_way = [&] {
    const DisplacedWeights weights(vector);
    weights.move(at::ones({vector.size()}, at::kDouble));
    throw std::runtime_error("on the way");
  };
  EXPECT_THROW(stopped_on_the_way(), std::runtime_error);
  EXPECT_TRUE(at::equal(vector.gather(), before));
}

TEST(NormalisedLogits, HaveNoMeanLengthOneAndNoScale) {
  const at::Tensor f = at::sin(at::arange(12, at::kDouble)).reshape({3, 4});
  const at::Tensor normalised = normalised_logits(f);
  // Sums of four float64 numbers of order 1.
  EXPECT_LT(normalised.sum(1).abs().max().item<double>(), 1e-15);
  EXPECT_LT((normalised.norm(2, {1}) - 1).abs().max().item<double>(), 1e-15);
  EXPECT_TRUE(at::allclose(normalised_logits(f * 7 + 3), normalised, 1e-14, 1e-14));
  EXPECT_TRUE(
      at::equal(normalised_logits(at::full({2, 4}, 5.0, at::kDouble)), at::zeros({2, 4}, at::kDouble)));
}

}  // namespace
}  // namespace basin
