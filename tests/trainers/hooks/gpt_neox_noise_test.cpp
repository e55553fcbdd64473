// GPT-NeoX's noise scale with its quirks, on a series worked out by hand from its description.
#include "trainers/hooks/gpt_neox_noise.h"

#include <gtest/gtest.h>

#include "tests/trainers/test_run.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/noise_gauge.h"

namespace basin::testing {
namespace {

struct Series {
  at::Tensor place = at::zeros({2}, at::kFloat);
  GptNeoxNoise noise{
      {{"w", "fc", ParameterKind::weight, place}}, /*batch_size=*/8, /*n_batches=*/3, /*beta=*/0.9};
  std::optional<GptNeoxNoise::Numbers> add(double x, double y) {
    return noise.add({at::tensor({static_cast<float>(x), static_cast<float>(y)})});
  }
};

void expect_numbers(const std::optional<GptNeoxNoise::Numbers>& found, double noise, double scale) {
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->noise, noise, 1e-6 * std::abs(noise));  // norms are float32
  EXPECT_NEAR(found->scale, scale, 1e-6 * std::abs(scale) + 1e-6);
  EXPECT_NEAR(found->b_simple, scale / noise, 1e-6 * std::abs(scale / noise) + 1e-6);
}

// B_s = 8, B_b = 24: noise = (24 big - 8 small)/16, scale = 12 (small - big); the averages are divided by
// 1 - 0.9^(gradients so far).
TEST(GptNeoxNoiseTest, FollowsASeriesByHand) {
  Series s;
  EXPECT_FALSE(s.add(1, 0));
  EXPECT_FALSE(s.add(0, 1));
  expect_numbers(s.add(2, 2), -0.1 / (1 - std::pow(0.9, 3)),
                 7.2 / (1 - std::pow(0.9, 3)));  // (1, 1): 2 and 8
  EXPECT_FALSE(s.add(1, 1));
  EXPECT_FALSE(s.add(NAN, 1)) << "passed over, not counted";
  EXPECT_FALSE(s.add(3, 1));
  expect_numbers(s.add(2, 1), (-0.09 + 0.5) / (1 - std::pow(0.9, 6)),
                 6.48 / (1 - std::pow(0.9, 6)));  // (2, 1): 5 and 5
  // 1e20 / 3 is a float32, its square is not: nothing is counted ...
  EXPECT_FALSE(s.add(1e20, 0));
  EXPECT_FALSE(s.add(1, 0));
  const auto overflow = s.add(1, 0);
  ASSERT_TRUE(overflow);
  EXPECT_TRUE(std::isnan(overflow->b_simple) && std::isnan(overflow->noise) &&
              std::isinf(overflow->big_square));
  // ... so the next gradient, a third of it, is taken for the mean of three: (1, 0), 1 and 9.
  expect_numbers(s.add(3, 0), (0.9 * 0.41 - 0.3) / (1 - std::pow(0.9, 9)),
                 (0.9 * 6.48 + 9.6) / (1 - std::pow(0.9, 9)));
  EXPECT_FALSE(s.add(1, 0));
  EXPECT_FALSE(s.add(1, 0));
  EXPECT_TRUE(s.add(1, 0)) << "a window of three again";
}

TEST(GptNeoxNoiseTest, GoesOnFromItsState) {
  Series whole, first, second;
  for (Series* s : {&whole, &first}) {
    s->add(1, 0);
    s->add(0, 1);
    s->add(2, 2);
    s->add(5, 3);
  }
  second.noise.load_state(first.noise.state(), first.noise.sum());
  whole.add(1, 2);
  second.add(1, 2);
  const auto a = whole.add(3, 3), b = second.add(3, 3);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->noise, b->noise);
  EXPECT_EQ(a->scale, b->scale);
}

// A rate at which no weight moves: every batch's gradient is one at the start.
TEST(GptNeoxNoiseTest, InARunTheGradientsAreThoseOfItsUpdates) {
  RunSettings s = small_settings();
  s.train.updates = 7;
  s.train.batch_size = 20;
  s.train.learning_rate = 1e-300;
  s.train.hook<GradientClippingOptions>().limit = 0.001;
  s.train.hook<NoiseGaugeOptions>().every = 3;
  s.train.hook<NoiseGaugeOptions>().compat = "gpt-neox";
  TestRun run(s), by_hand(s);
  run.run();
  const auto& rows = run.listener.rows.at("noise_scale");
  ASSERT_EQ(rows.size(), 2u);
  const Table table = run.trainer->hook_tables().at(0);
  ASSERT_EQ(table.columns.at(4).name, "small_square");
  ASSERT_EQ(table.columns.at(5).name, "big_square");
  for (int64_t window = 0; window < 2; ++window) {
    double small = 0, big = 0;
    for (const at::Tensor& g : plain_gradient(by_hand, 20 * (3 * window + 2), 20))
      small += g.square().sum().item<double>();
    for (const at::Tensor& g : plain_gradient(by_hand, 60 * window, 60))
      big += g.square().sum().item<double>();
    const std::vector<double>& row = rows.at(static_cast<size_t>(window));
    EXPECT_EQ(row.at(0), 3 * static_cast<double>(window + 1));
    EXPECT_NEAR(row.at(4), small, 1e-6 * small);  // float32 rounding of the norm
    EXPECT_NEAR(row.at(5), big, 1e-6 * big);
    EXPECT_EQ(row.back(), 0);
  }
}

}  // namespace
}  // namespace basin::testing
