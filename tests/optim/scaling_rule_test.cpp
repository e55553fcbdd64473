// Rules by batch size against numbers worked out by hand from their sources.
#include "optim/scaling_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "optim/schedule.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

ScheduleOptions with_rule(const std::string& rule) {
  ScheduleOptions options;
  options.scaling_rule = rule;
  return options;
}

/// What a published table wants besides its name.
ScheduleOptions published(const std::string& rule) {
  ScheduleOptions options = with_rule(rule);
  options.warmup = 1;
  options.schedule_unit = "epochs";
  return options;
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(ScalingRule, GrowsFromTheBaseBatch) {
  for (const auto& [rule, expected] :
       {std::pair<std::string, double>{"none", 1}, {"linear", 16}, {"sqrt", 4}, {"malladi", 4}}) {
    EXPECT_DOUBLE_EQ(rate_factor(with_rule(rule), 4096), expected) << rule;
    EXPECT_DOUBLE_EQ(rate_factor(with_rule(rule), 256), 1) << rule;
  }
  EXPECT_DOUBLE_EQ(rate_factor(with_rule("sqrt"), 64), 0.5);
  EXPECT_THAT(refusal([] { rate_factor(with_rule("cubic"), 256); }),
              HasSubstr("linear, sqrt, power, malladi"));
}

// 16 base batches: 16^p; 1/4 of one: 4^-p.
TEST(ScalingRule, APowerLiesBetweenNoneAndLinear) {
  for (const auto& [power, at_16, at_quarter] :
       {std::tuple{0.0, 1.0, 1.0}, {0.5, 4.0, 0.5}, {0.75, 8.0, std::sqrt(0.125)}, {1.0, 16.0, 0.25}}) {
    ScheduleOptions options = with_rule("power");
    options.scaling_power = power;
    EXPECT_DOUBLE_EQ(rate_factor(options, 4096), at_16) << power;
    EXPECT_DOUBLE_EQ(rate_factor(options, 64), at_quarter) << power;
    EXPECT_DOUBLE_EQ(rate_factor(options, 256), 1) << power;
  }
  EXPECT_EQ(ScheduleOptions().scaling_power, 0.75);
}

TEST(ScalingRule, PublishedTables) {
  struct Row {
    std::string rule;
    int64_t batch_size;
    double rate, warmup;
  };
  for (const Row& row : std::vector<Row>{{"tpu", 256, 25, 5},
                                         {"tpu", 16384, 25, 5},
                                         {"tpu", 16385, 41, 16},
                                         {"tpu", 32767, 41, 16},
                                         {"tpu", 32768, 34, 12},
                                         {"tpu", 65536, 41, 16},
                                         {"torchlars", 256, 0.2, 0},
                                         {"torchlars", 8192, 12.8, 5},
                                         {"torchlars", 16384, 25, 5},
                                         {"torchlars", 32768, 29, 5},
                                         {"mlperf", 1024, 8.5, 5},
                                         {"mlperf", 512, 10, 5},
                                         {"mlperf", 4096, 10, 5},
                                         {"mlperf", 16384, 25, 5},
                                         {"mlperf", 32767, 25, 5},
                                         {"mlperf", 32768, 31.2, 25}}) {
    const ScheduleOptions options = published(row.rule);
    EXPECT_EQ(rate_factor(options, row.batch_size), row.rate) << row.rule << " " << row.batch_size;
    EXPECT_EQ(warmup_at(options, row.batch_size), row.warmup) << row.rule << " " << row.batch_size;
    EXPECT_NO_THROW(check_schedule(options, 1, row.batch_size));
  }
  for (const int64_t batch_size : {128, 4096, 65536}) {
    EXPECT_THAT(
        refusal([&] { check_schedule(published("torchlars"), 1, batch_size); }),
        AllOf(HasSubstr("scaling_rule = \"torchlars\""),
              HasSubstr("batch_size = " + std::to_string(batch_size)), HasSubstr("256, 8192, 16384, 32768")));
  }
}

TEST(ScalingRule, APublishedTableLeavesNothingElseToSay) {
  const auto refused = [](const std::function<void(ScheduleOptions&)>& change, double rate) {
    ScheduleOptions options = published("tpu");
    change(options);
    return refusal([&] { check_schedule(options, rate, 8192); });
  };
  EXPECT_EQ(refused([](ScheduleOptions&) {}, 1), "none");
  EXPECT_THAT(refused([](ScheduleOptions&) {}, 0.1),
              AllOf(HasSubstr("\"tpu\""), HasSubstr("learning_rate = 0.1")));
  EXPECT_THAT(refused([](ScheduleOptions& o) { o.warmup = 0.05; }, 1), HasSubstr("warmup = 0.05"));
  EXPECT_THAT(refused([](ScheduleOptions& o) { o.schedule_unit = "share"; }, 1), HasSubstr("schedule_unit"));
  EXPECT_THAT(refused([](ScheduleOptions& o) { o.warmup_rule = "linear"; }, 1), HasSubstr("warmup_rule"));
  EXPECT_THAT(refused([](ScheduleOptions& o) { o.warmup_from = "base"; }, 1), HasSubstr("warmup_from"));
}

/// An optimiser's options with these settings after scaling to k base batches.
std::map<std::string, double> scaled(const std::string& optimizer, const std::vector<std::string>& settings,
                                     double k, const ScheduleOptions& rules = with_rule("malladi")) {
  const std::unique_ptr<AnyOptions> options =
      testing::options_with(find_entry(optimizer_registry(), optimizer, "optimizer"), settings);
  scale_options(rules, static_cast<int64_t>(256 * k), optimizer, *options);
  std::map<std::string, double> values;
  for (const Option& option : options->view()) {
    const OptionValue value = option.get();
    if (const auto* number = std::get_if<double>(&value)) values[option.key] = *number;
  }
  return values;
}

TEST(Malladi, ScalesTheMomentsOfAdamAndNothingElse) {
  const auto four = scaled("adamw", {"weight_decay=0.1"}, 4);
  // 1 - 4 (1 - 0.9), 1 - 4 (1 - 0.999), 1e-8 / 2: rounding of three operations on numbers of order one.
  EXPECT_NEAR(four.at("beta1"), 0.6, 1e-15);
  EXPECT_NEAR(four.at("beta2"), 0.996, 1e-15);
  EXPECT_DOUBLE_EQ(four.at("eps"), 5e-9);
  EXPECT_EQ(four.at("weight_decay"), 0.1);
  const auto quarter = scaled("adam", {"eps=1e-6"}, 0.25);
  EXPECT_NEAR(quarter.at("beta1"), 0.975, 1e-15);
  EXPECT_NEAR(quarter.at("beta2"), 0.99975, 1e-15);
  EXPECT_DOUBLE_EQ(quarter.at("eps"), 2e-6);
  const auto same = scaled("lamb", {"preset=paper", "beta1=0.8"}, 1);
  EXPECT_NEAR(same.at("beta1"), 0.8, 1e-15);
  EXPECT_NEAR(scaled("adam", {}, 4, with_rule("sqrt")).at("beta1"), 0.9, 0);
}

TEST(Malladi, StopsWhereABetaWouldBeNegative) {
  // 100 (1 - 0.99) rounds above 1.
  EXPECT_EQ(scaled("adam", {"beta1=0.99", "beta2=0.999"}, 100).at("beta1"), 0);
  EXPECT_THAT(refusal([] { scaled("adam", {}, 16); }), AllOf(HasSubstr("adam.beta1"), HasSubstr("malladi"),
                                                             HasSubstr("1.6"), HasSubstr("base_batch")));
  EXPECT_THAT(refusal([] { scaled("sgd", {}, 2); }), AllOf(HasSubstr("\"sgd\""), HasSubstr("beta1")));
  EXPECT_EQ(refusal([] { scaled("sgd", {}, 2, with_rule("linear")); }), "none");
}

/// In the limit of many small steps k of them at B are one of the rule's at kB, the gradients' noise alone
/// setting Adam's second moment: variance s^2/k. Their displacements under a constant mean gradient g are k r
/// g/s and r sqrt(k) g sqrt(k)/s.
TEST(Malladi, KStepsBecomeOne) {
  constexpr double k = 8, mean = 1e-3, noise = 1;
  const auto displacement = [](const std::vector<std::string>& settings, double rate, double deviation,
                               int steps) {
    const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {0})};
    const auto optimizer = make_test_optimizer("adam", settings, one);
    optimizer->set_learning_rate(rate);
    double sign = 1, before = 0;
    for (int t = 0; t < 4000 + steps; ++t) {  // the moments settle first
      if (t == 4000) before = values_of(one[0].tensor)[0];
      set_gradient(one[0], {mean + sign * deviation});  // of variance deviation^2
      sign = -sign;
      optimizer->step();
    }
    return values_of(one[0].tensor)[0] - before;
  };
  const auto large = scaled("adam", {"beta1=0.99", "beta2=0.999", "eps=0.1"}, k);
  const std::vector<std::string> settings{fmt::format("beta1={:.17g}", large.at("beta1")),
                                          fmt::format("beta2={:.17g}", large.at("beta2")),
                                          fmt::format("eps={:.17g}", large.at("eps"))};
  const double small_steps = displacement({"beta1=0.99", "beta2=0.999", "eps=0.1"}, 1e-3, noise, 64 * 8);
  const double large_steps = displacement(settings, 1e-3 * std::sqrt(k), noise / std::sqrt(k), 64);
  // Equal up to the moments' swings with the alternating noise, which multiply: (1 - beta1)/(1 + beta1) (1 -
  // beta2)/(1 + beta2), 2e-4 at kB.
  EXPECT_NEAR(large_steps / small_steps, 1, 1e-3);
  // With eps = 0.1 in place of 0.035, against deviations of 0.35, a seventh less.
  std::vector<std::string> unscaled = settings;
  unscaled[2] = "eps=0.1";
  EXPECT_GT(std::abs(displacement(unscaled, 1e-3 * std::sqrt(k), noise / std::sqrt(k), 64) / small_steps - 1),
            0.1);
}

ScheduleOptions rules(const std::string& beta2_rule, const std::string& decay_rule) {
  ScheduleOptions options;
  options.beta2_rule = beta2_rule;
  options.decay_rule = decay_rule;
  return options;
}

// An example's share of v after E examples: beta2^(E/B) (1 - beta2). Halved after the same E at every B.
TEST(HalfLife, OfSecondMomentsIsTheSameInExamples) {
  for (const std::string& name : names_of(optimizer_registry())) {
    const OptimizerEntry& entry = find_entry(optimizer_registry(), name, "optimizer");
    if (!entry.beta2 || entry.traits(*entry.make_options()).squares_in.empty()) {
      EXPECT_THAT(refusal([&] { scaled(name, {}, 2, rules("half_life", "none")); }),
                  AllOf(HasSubstr("beta2_rule"), HasSubstr("\"" + name + "\"")));
      continue;
    }
    const auto at = [&](double k) { return scaled(name, {"beta2=0.999"}, k, rules("half_life", "none")); };
    const auto half_life = [&](double k) { return 256 * k * std::log(0.5) / std::log(at(k).at("beta2")); };
    // log of a number that is rounded to 1e-16 below 1: 1e-13 of 1e-3.
    for (const double k : {0.25, 4.0, 64.0}) EXPECT_NEAR(half_life(k) / half_life(1), 1, 1e-11) << name << k;
    EXPECT_DOUBLE_EQ(at(4).at("beta2"), 0.999 * 0.999 * 0.999 * 0.999) << name;
    for (const auto& [key, value] : scaled(name, {}, 1, rules("none", "none"))) {
      if (key == "beta2") continue;
      EXPECT_EQ(at(4).at(key), value) << name << key;
    }
  }
  EXPECT_EQ(scaled("adam", {"beta2=0"}, 4, rules("half_life", "none")).at("beta2"), 0);
  ScheduleOptions both = rules("half_life", "none");
  both.scaling_rule = "malladi";
  EXPECT_THAT(refusal([&] { scaled("adam", {}, 2, both); }), HasSubstr("both scale beta2"));
}

// B / (lr wd), the examples in which decay alone takes 1/e of the weights, is the same at every B.
TEST(DecayRule, KeepsTheTimeScaleOfTheWeightsInExamples) {
  for (const std::string& name : names_of(optimizer_registry())) {
    for (const double k : {0.25, 1.0, 16.0}) {
      const auto found = scaled(name, {"weight_decay=0.125"}, k, rules("none", "linear"));
      EXPECT_EQ(256 * k / found.at("weight_decay"), 256 / 0.125) << name;
    }
  }
  EXPECT_EQ(scaled("adamw", {"weight_decay=0.125"}, 16, rules("none", "none")).at("weight_decay"), 0.125);
}

TEST(Gain, IsHowFarOneGradientMovesInAllUpdates) {
  // A gradient of 1 once, and then 0 until the buffer is empty: 0.9^2000 < 1e-91.
  const auto moved = [](const std::string& name, const std::vector<std::string>& settings) {
    const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {0})};
    const auto optimizer = make_test_optimizer(name, settings, one);
    optimizer->set_learning_rate(0.125);
    for (int t = 0; t < 2000; ++t) {
      set_gradient(one[0], {t == 0 ? 1.0 : 0.0});
      optimizer->step();
    }
    return std::pair{-values_of(one[0].tensor)[0] / 0.125, optimizer->gain()};
  };
  const std::vector<std::string> untrusted{"weight_decay=0", "trust_coefficient=1",
                                           "exclude_from_trust=[\"weight\"]"};
  const auto lars = [&](std::vector<std::string> more) {
    more.insert(more.end(), untrusted.begin(), untrusted.end());
    return more;
  };
  for (const auto& [name, settings, by_hand] :
       std::vector<std::tuple<std::string, std::vector<std::string>, double>>{
           {"sgd", {"momentum=0"}, 1},
           {"sgd", {"momentum=0", "dampening=0.5"}, 1},
           {"sgd", {"momentum=0.9"}, 10},
           {"sgd", {"momentum=0.9", "nesterov=true"}, 10},
           {"sgd", {"momentum=0.9", "dampening=0.5"}, 5},
           {"lars", lars({"momentum=0.75"}), 4},
           {"lars", lars({"preset=lamb_paper", "ratio_in=step", "momentum=0.75"}), 1}}) {
    const auto [distance, gain] = moved(name, settings);
    EXPECT_NEAR(distance, by_hand, 1e-12) << name << " " << settings.front();  // rounding of 2,000 additions
    EXPECT_NEAR(gain, by_hand, 1e-14) << name << " " << settings.front();
  }
  EXPECT_EQ(make_test_optimizer("adamw", {}, {make_parameter("w", ParameterKind::weight, {1})})->gain(), 1);
}

}  // namespace
}  // namespace basin
