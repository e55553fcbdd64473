// lr_factors and decay_factors: which parameters an entry means, and what a factor does to a step.
#include <gtest/gtest.h>

#include "core/error.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "tests/optim/optim_support.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using namespace testing;

std::vector<ParameterInfo> three_tensors() {
  return {make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1}),
          make_parameter("conv.a=b", ParameterKind::bias, {0.5, -0.25}),
          make_parameter("norm.bias", ParameterKind::norm_bias, {1.5, 0.75, -2, 3})};
}

TEST(Factors, OfSeveralThatMatchTheLastCounts) {
  const auto factors = [](const Factors& list) { return factors_of(three_tensors(), list); };
  EXPECT_EQ(factors({}), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(factors({"norm_bias=64"}), (std::vector<double>{1, 1, 64}));
  EXPECT_EQ(factors({"dim<=1=3", "bias=.5"}), (std::vector<double>{3, 0.5, 3}));
  EXPECT_EQ(factors({"bias=.5", "dim<=1=3"}), (std::vector<double>{3, 3, 3}));
  EXPECT_EQ(factors({"name:*.a=b=1e-3", "name:f?.weight=7"}), (std::vector<double>{7, 1e-3, 1}));
  EXPECT_EQ(factors({"dim<=0=3", "norm_weight=5", "name:nobody=2"}), (std::vector<double>{1, 1, 1}));
}

TEST(Factors, BadOnesAreRefusedInOneLine) {
  for (const std::string bad :
       {"norm_bias", "norm_bias=", "=2", "bias=0", "bias=-1", "bias=inf", "bias=nan", "bias=1e999", "bias=2x",
        "bias= 2", "bias=0x2", "biases=2", "no_decay=2", "dim<=10=2", "dim<=9", "name:=2", ""}) {
    for (const std::string key : {"lr_factors", "decay_factors"}) {
      const std::string message = message_of([&] {
        make_test_optimizer("sgd", {fmt::format("{}=[\"weight=2\", \"{}\"]", key, bad)}, three_tensors());
      });
      EXPECT_NE(message.find(fmt::format("test: {} = [\"weight=2\", \"{}\"] violates", key, bad)),
                std::string::npos)
          << message;
      EXPECT_NE(message.find("ENTRY=FACTOR"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
    EXPECT_NE(message_of([&] { factors_of(three_tensors(), {bad}); }).find("\"" + bad + "\""),
              std::string::npos);
  }
}

TEST(Factors, AreNoPartOfAPreset) {
  for (const std::string method : {"lars", "lamb"}) {
    const auto optimizer =
        make_test_optimizer(method, {"lr_factors=[\"norm_bias=64\"]", "preset=nus"}, three_tensors());
    EXPECT_EQ(optimizer->treatment_table()[2].rate_factor, 64);
    EXPECT_EQ(optimizer->treatment_table()[0].rate_factor, 1);
  }
}

// a/2 w^2 under momentum m at rate f r: w_{t+1} = (1 + m - f r a) w_t - m w_{t-1}, for each parameter with
// its f.
TEST(Factors, UnderMomentumEachParameterObeysAHeavyBallOfItsOwn) {
  const std::vector<ParameterInfo> two{make_parameter("fc.weight", ParameterKind::weight, {1.5}),
                                       make_parameter("norm.bias", ParameterKind::norm_bias, {1.5})};
  const auto sgd = make_test_optimizer("sgd", {"momentum=0.9", "lr_factors=[\"norm_bias=64\"]"}, two);
  sgd->set_learning_rate(0.002);
  std::vector<std::vector<double>> paths{{1.5, 1.5}, {1.5, 1.5}};
  const std::vector<double> factors{1, 64};
  for (int t = 0; t < 20; ++t) {
    for (const ParameterInfo& p : two) set_gradient(p, {2 * values_of(p.tensor)[0]});
    sgd->step();
    for (size_t i = 0; i < 2; ++i) {
      std::vector<double>& path = paths[i];
      path.push_back((1.9 - factors[i] * 0.002 * 2) * path.back() - 0.9 * path[path.size() - 2]);
      EXPECT_NEAR(values_of(two[i].tensor)[0], path.back(), 1e-13)
          << "step " << t;  // roundings of numbers near 1
    }
  }
}

// airbench94's groups: 64 times the rate at 1/64 of the decay. With the decay in the gradient or apart from
// it the weights shrink by rate x decay alike.
TEST(Factors, ARateTimes64AtADecayOver64DecaysAsTheOthers) {
  for (const std::string decay : {"gradient", "decoupled"}) {
    const std::vector<ParameterInfo> two{make_parameter("fc.weight", ParameterKind::weight, {1.5}),
                                         make_parameter("norm.bias", ParameterKind::norm_bias, {1.5})};
    const auto sgd =
        make_test_optimizer("sgd",
                            {"momentum=0.9", "weight_decay=0.3", "decay=" + decay, "exclude_from_decay=[]",
                             "lr_factors=[\"norm_bias=64\"]", "decay_factors=[\"norm_bias=0.015625\"]"},
                            two);
    sgd->set_learning_rate(0.05);
    std::vector<double> path{1.5, 1.5};
    for (int t = 0; t < 20; ++t) {
      for (const ParameterInfo& p : two) set_gradient(p, {0});
      sgd->step();
      const double now = path.back(), before = path[path.size() - 2];
      path.push_back(decay == "decoupled" ? now * (1 - 0.05 * 0.3) : (1.9 - 0.05 * 0.3) * now - 0.9 * before);
      for (const ParameterInfo& p : two) EXPECT_NEAR(values_of(p.tensor)[0], path.back(), 1e-14) << decay;
    }
  }
}

// Without momentum the step is rate factor trust |w| for LARS and rate factor |w| for LAMB, whatever the
// gradient.
TEST(Factors, LengthenTheStepThatATrustRatioSets) {
  const double norm = norm_by_hand({2, 1, -1, 3});
  for (const auto& [method, settings, trust] :
       {std::tuple{"lars", std::vector<std::string>{"momentum=0", "weight_decay=0", "trust_coefficient=0.02"},
                   0.02},
        {"lamb", {}, 1.0}}) {
    for (const double factor : {0.25, 3.0}) {
      const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {2, 1, -1, 3})};
      std::vector<std::string> all = settings;
      all.push_back(fmt::format("lr_factors=[\"weight={}\"]", factor));
      const auto optimizer = make_test_optimizer(method, all, one);
      optimizer->set_learning_rate(0.5);
      set_gradient(one[0], {0.01, -0.7, 0.3, 0.2});
      optimizer->step();
      EXPECT_NEAR(optimizer->last_step()[0].update_norm, 0.5 * factor * trust * norm, 1e-14) << method;
    }
  }
}

// LARC holds the local rate below the tensor's own: |w| = 5, |g| = 1, so lambda = 0.02 * 5 = 0.1 against a
// rate of 0.05 or of 64 * 0.05.
TEST(Factors, LarcClipsAtTheTensorsOwnRate) {
  const std::vector<ParameterInfo> two{make_parameter("fc.weight", ParameterKind::weight, {3, 4}),
                                       make_parameter("norm.bias", ParameterKind::norm_bias, {3, 4})};
  const auto larc =
      make_test_optimizer("larc", {"momentum=0", "eps=0", "lr_factors=[\"norm_bias=64\"]"}, two);
  larc->set_learning_rate(0.05);
  for (const ParameterInfo& p : two) set_gradient(p, {0.6, 0.8});
  larc->step();
  EXPECT_NEAR(values_of(two[0].tensor)[0], 3 - 0.05 * 0.6, 1e-15);
  EXPECT_NEAR(values_of(two[1].tensor)[0], 3 - 0.1 * 0.6, 1e-15);
  EXPECT_EQ(larc->last_step()[0].trust_ratio, 1);
  EXPECT_NEAR(larc->last_step()[1].trust_ratio, 0.1 / 3.2, 1e-16);
}

// AdamW's first step is the rate, by the gradient's sign, and rate x decay of the weight.
TEST(Factors, AdamWStepsByItsOwnRateAndDecay) {
  const std::vector<ParameterInfo> one{make_parameter("norm.bias", ParameterKind::norm_bias, {1, 1})};
  const auto adamw =
      make_test_optimizer("adamw",
                          {"weight_decay=0.1", "eps=0", "exclude_from_decay=[]",
                           "lr_factors=[\"norm_bias=8\"]", "decay_factors=[\"norm_bias=0.5\"]"},
                          one);
  adamw->set_learning_rate(0.01);
  set_gradient(one[0], {3, -1e-3});
  adamw->step();
  EXPECT_NEAR(values_of(one[0].tensor)[0], 1 - 0.08 - 0.08 * 0.05, 1e-15);
  EXPECT_NEAR(values_of(one[0].tensor)[1], 1 + 0.08 - 0.08 * 0.05, 1e-15);
}

/// Every method with factors whose tensors know nothing of each other's gradients by default. Besides them, and so that none
/// does: SGD's other rules, LARS and LAMB under each of their presets, LAMBC.
std::vector<std::pair<std::string, std::vector<std::string>>> uncoupled_methods() {
  const std::vector<std::string> uncoupled{"max_gradient_norm=0", "normalise_gradient=false"};
  std::vector<std::pair<std::string, std::vector<std::string>>> all{
      {"sgd", {"nesterov=true", "decay=decoupled"}}, {"lambc", uncoupled}};
  for (const OptimizerEntry& entry : optimizer_registry())
    if (entry.factors && !entry.traits(*entry.make_options()).couples_tensors)
      all.push_back({entry.name, {}});
  for (const auto& preset : lars_presets()) all.push_back({"lars", {"preset=" + preset.name}});
  for (const auto& preset : lamb_presets())
    all.push_back({"lamb", {"preset=" + preset.name, uncoupled[0], uncoupled[1]}});
  return all;
}

void step(Optimizer& optimizer, const std::vector<ParameterInfo>& parameters, int t, double rate) {
  for (const ParameterInfo& p : parameters) {
    std::vector<double> gradient = values_of(p.tensor);
    for (size_t j = 0; j < gradient.size(); ++j)
      gradient[j] = std::sin(1.0 + 3 * t + 7 * static_cast<double>(j));
    set_gradient(p, gradient);
  }
  optimizer.set_learning_rate(rate);
  optimizer.step();
}

// Each parameter goes where it goes alone, at a rate and a decay of its own, bit for bit.
TEST(Factors, EachParameterGoesAsItWouldAlone) {
  const std::vector<double> on_rate{1, 3, 64}, on_decay{0.3, 5, 0.015625};
  for (const auto& [method, base] : uncoupled_methods()) {
    SCOPED_TRACE(method + " " + (base.empty() ? "" : base.front()));
    std::vector<std::string> settings = base;
    settings.insert(settings.end(),
                    {"weight_decay=0.2", "exclude_from_decay=[]", "lr_factors=[\"bias=3\", \"norm_bias=64\"]",
                     "decay_factors=[\"weight=0.3\", \"bias=5\", \"norm_bias=0.015625\"]"});
    const std::vector<ParameterInfo> together = three_tensors(), apart = three_tensors();
    const auto all = make_test_optimizer(method, settings, together);
    for (int t = 0; t < 4; ++t) step(*all, together, t, 0.01 * (1 + t));
    for (size_t i = 0; i < apart.size(); ++i) {
      settings = base;
      settings.insert(settings.end(),
                      {fmt::format("weight_decay={}", 0.2 * on_decay[i]), "exclude_from_decay=[]"});
      const auto alone = make_test_optimizer(method, settings, {apart[i]});
      for (int t = 0; t < 4; ++t) step(*alone, {apart[i]}, t, 0.01 * (1 + t) * on_rate[i]);
      EXPECT_EQ(values_of(together[i].tensor), values_of(apart[i].tensor)) << together[i].name;
      EXPECT_EQ(all->last_step()[i].update_norm, alone->last_step()[0].update_norm) << together[i].name;
    }
  }
}

}  // namespace
}  // namespace basin
