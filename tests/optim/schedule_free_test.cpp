// Schedule-free SGD and AdamW: averages by closed forms, the gradient point, and where a quadratic stops being stable.
#include "optim/schedule_free.h"

#include <gtest/gtest.h>

#include "tests/optim/matrices.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

ParameterInfo scalar(double value) { return make_parameter("fc.weight", ParameterKind::weight, {value}); }

// z_t = 1 - r (1 + ... + t) for gradients 1, 2, 3, ...; x_t is the mean of z_1 .. z_t, whatever beta.
TEST(ScheduleFree, WeightsAreTheMeanOfFastWeightsAtAConstantRate) {
  const std::vector<ParameterInfo> one{scalar(1)};
  const auto optimizer = make_test_optimizer("schedule_free_sgd", {}, one);
  double sum = 0;
  for (int t = 1; t <= 8; ++t) {
    step(*optimizer, one[0], at::tensor({static_cast<double>(t)}, at::kDouble), 0.125);
    sum += 1 - 0.125 * t * (t + 1) / 2;
    EXPECT_NEAR(values_of(one[0].tensor)[0], sum / t, 1e-14);
  }
}

// Weights t^a r_max^b: rates 1, 2, 1 with a = 1, b = 2 make 1, 2 4, 3 4.
TEST(ScheduleFree, WarmUpWeighsLess) {
  const std::vector<ParameterInfo> one{scalar(0)};
  const auto optimizer = make_test_optimizer("schedule_free_sgd", {"averaging_power=1"}, one);
  const at::Tensor g = at::tensor({-1.0}, at::kDouble);
  step(*optimizer, one[0], g, 1);
  step(*optimizer, one[0], g, 2);
  step(*optimizer, one[0], g, 1);
  EXPECT_NEAR(values_of(one[0].tensor)[0], (1 * 1 + 8 * 3 + 12 * 4) / 21.0, 1e-14);
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : optimizer->state()) state[name] = tensor;
  EXPECT_EQ(state.at("weight_sum").item<double>(), 21);
  EXPECT_EQ(state.at("largest_rate").item<double>(), 2);
  EXPECT_EQ(state.at("fast_weights/fc.weight").item<double>(), 4);
}

// By hand, on h/2 w^2, whose gradient is asked for at y by the closure; decay at y too.
TEST(ScheduleFree, TakesGradientsAndDecayBetweenAverageAndFastWeights) {
  const double h = 3, beta = 0.75, wd = 0.5, rate = 0.1;
  for (const bool by_closure : {true, false}) {
    const std::vector<ParameterInfo> one{scalar(1)};
    const auto optimizer =
        make_test_optimizer("schedule_free_sgd", {"momentum=0.75", "weight_decay=0.5"}, one);
    optimizer->set_learning_rate(rate);
    double x = 1, z = 1;
    for (int t = 1; t <= 10; ++t) {
      const double y = (1 - beta) * z + beta * x;
      z -= rate * (h + wd) * y;
      x += (z - x) / t;
      const auto gradient = [&] {
        const at::Tensor w = one[0].tensor.detach();
        EXPECT_NEAR(w.item<double>(), y, 1e-14) << t;
        at::Tensor(one[0].tensor).mutable_grad() = h * w;
        return at::Tensor();
      };
      if (by_closure) {
        optimizer->step(gradient);
      } else {
        optimizer->go_to_gradient_point();
        gradient();
        optimizer->step();
      }
      EXPECT_NEAR(values_of(one[0].tensor)[0], x, 1e-14) << t;
    }
  }
}

// r = g / (sqrt(v^) + eps): of constant gradients their sign, so the fast weights fall by the rate.
TEST(ScheduleFree, AdamWNormalisesTheStepsOfFastWeights) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {0, 0, 5})};
  const auto optimizer = make_test_optimizer("schedule_free_adamw", {"eps=0"}, one);
  for (int t = 1; t <= 4; ++t) {
    step(*optimizer, one[0], at::tensor({1e-3, -7.0, 0.0}, at::kDouble), 0.5);
    // The mean of -0.5, -1, ..., -t/2.
    EXPECT_NEAR(values_of(one[0].tensor)[0], -0.25 * (t + 1), 1e-13);
    EXPECT_NEAR(values_of(one[0].tensor)[1], 0.25 * (t + 1), 1e-13);
    EXPECT_EQ(values_of(one[0].tensor)[2], 5);
  }
}

// The same bits come back whether there was a step or none; before the first update both points are one, however often weights
// were changed since the constructor.
TEST(ScheduleFree, LeavesTheGradientPointAsItCame) {
  at::Generator generator = make_generator(4);
  const std::vector<ParameterInfo> one{weight_of(at::empty({7, 5}, at::kFloat).normal_(0, 1, generator))};
  const auto optimizer = make_test_optimizer("schedule_free_adamw", {}, one);
  {
    const at::NoGradGuard no_grad;
    at::Tensor(one[0].tensor).mul_(1.25);
  }
  const at::Tensor start = one[0].tensor.detach().clone();
  optimizer->go_to_gradient_point();
  EXPECT_TRUE(at::equal(one[0].tensor, start));
  optimizer->leave_gradient_point();
  for (int t = 0; t < 3; ++t)
    step(*optimizer, one[0], at::empty({7, 5}, at::kFloat).normal_(0, 1, generator), 0.1);
  const at::Tensor x = one[0].tensor.detach().clone();
  for (int twice = 0; twice < 2; ++twice) optimizer->go_to_gradient_point();
  EXPECT_FALSE(at::equal(one[0].tensor, x));
  for (int twice = 0; twice < 2; ++twice) optimizer->leave_gradient_point();
  EXPECT_TRUE(at::equal(one[0].tensor, x));
}

// After a million updates the average stands nearly still, and the fast weights alone are stable or not.
TEST(ScheduleFree, StabilityLimitIsThatOfFastWeightsLateInARun) {
  for (const auto& [share, grows] : {std::pair{0.98, false}, {1.02, true}}) {
    const std::vector<ParameterInfo> one{scalar(0)};
    const auto optimizer = make_test_optimizer("schedule_free_sgd", {"momentum=0.9"}, one);
    NamedTensors state = optimizer->state();
    const double rate = share * optimizer->stability_limit();  // the curvature is 1
    for (auto& [name, tensor] : state) {
      if (name == "updates") tensor.fill_(1'000'000);
      if (name == "weight_sum") tensor.fill_(1e6 * rate * rate);
      if (name == "largest_rate") tensor.fill_(rate);
      if (name == "fast_weights/fc.weight") tensor.fill_(1);
    }
    optimizer->load_state(state);
    EXPECT_DOUBLE_EQ(optimizer->stability_limit(), 20);
    optimizer->set_learning_rate(rate);
    for (int t = 0; t < 400; ++t) {
      optimizer->go_to_gradient_point();
      at::Tensor(one[0].tensor).mutable_grad() = one[0].tensor.detach().clone();
      optimizer->step();
    }
    double fast = NAN;
    for (const auto& [name, tensor] : optimizer->state())
      if (name == "fast_weights/fc.weight") fast = std::abs(tensor.item<double>());
    if (grows) {
      EXPECT_GT(fast, 1e3);  // 1.04^400 = 6e6
    } else {
      EXPECT_LT(fast, 1e-2);  // 0.96^400 = 8e-8, and the average's share
    }
  }
}

}  // namespace
}  // namespace basin
