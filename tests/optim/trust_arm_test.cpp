// What stands in the place of trust ratios, besides the golden traces: preconditioners, limits, permutations, what is refused.
#include "optim/trust_arm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/optim/optim_support.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::vector<std::vector<double>> kGradients{
    {0.3, 0.2, -0.6}, {0.05, -0.4}, {-1.0, 0.5}, {0.125, -0.25}};

std::vector<ParameterInfo> parameters() {
  return {make_parameter("a.weight", ParameterKind::weight, {0.5, -1.25, 2.0}),
          make_parameter("b.weight", ParameterKind::weight, {0.1, 0.3}),
          make_parameter("c.weight", ParameterKind::weight, {0.25, -0.75}),
          make_parameter("d.bias", ParameterKind::bias, {1.0, 1.5})};
}

std::vector<at::Tensor> gradients() {
  std::vector<at::Tensor> result;
  for (const auto& values : kGradients) result.push_back(at::tensor(values, at::kDouble));
  return result;
}

/// An update at rate 0: state and trust ratios come about and weights stay.
std::unique_ptr<Optimizer> stepped(const std::string& method, const std::vector<std::string>& settings) {
  const std::vector<ParameterInfo> p = parameters();
  std::unique_ptr<Optimizer> optimizer = make_test_optimizer(method, settings, p);
  for (size_t i = 0; i < p.size(); ++i) set_gradient(p[i], kGradients[i]);
  optimizer->set_learning_rate(0);
  optimizer->step();
  return optimizer;
}

const std::vector<std::string> kGiven{"trust_ratios=[\"a.weight=0.5\", \"b.weight=2\", \"c.weight=7\"]"};

std::vector<std::string> settings_of(const std::string& arm) {
  std::vector<std::string> settings = kGiven;
  settings.push_back("trust=" + arm);
  return settings;
}

// P holds one over the ratio that the step has: the ratios are those that golden traces check.
TEST(TrustArm, IsInThePreconditioner) {
  for (const char* method : {"lars", "lamb"}) {
    const auto live = stepped(method, {});
    const std::vector<at::Tensor> p_live = live->preconditioner(gradients());
    for (const char* arm : {"frozen", "mean", "shuffled", "frozen_mean", "frozen_shuffled"}) {
      const auto changed = stepped(method, settings_of(arm));
      const std::vector<at::Tensor> p = changed->preconditioner(gradients());
      for (size_t i = 0; i < 3; ++i) {
        const double ratio = live->last_step()[i].trust_ratio / changed->last_step()[i].trust_ratio;
        EXPECT_LE((p[i] / p_live[i] / ratio - 1).abs().max().item<double>(), 1e-14) << method << ' ' << arm;
      }
      EXPECT_TRUE(p[3].equal(p_live[3]));
      EXPECT_NE(changed->last_step()[0].trust_ratio, live->last_step()[0].trust_ratio)
          << method << ' ' << arm;
      EXPECT_TRUE(std::isnan(changed->last_step()[3].trust_ratio));
    }
  }
}

TEST(TrustArm, WithGivenRatiosHasTheLimitOfTheMethodBelow) {
  for (const char* arm : {"frozen", "frozen_mean", "frozen_shuffled"}) {
    EXPECT_DOUBLE_EQ(stepped("lars", settings_of(arm))->stability_limit(), 2 * 1.9);
    EXPECT_DOUBLE_EQ(stepped("lamb", settings_of(arm))->stability_limit(), 2 * 1.9 / (1 - 0.9));
  }
  // P follows the gradient where its norm clips or normalises it.
  for (const char* norm : {"max_gradient_norm=1", "normalise_gradient=true"}) {
    std::vector<std::string> settings = settings_of("frozen");
    settings.emplace_back(norm);
    EXPECT_TRUE(std::isnan(stepped("lamb", settings)->stability_limit())) << norm;
  }
  for (const char* arm : {"live", "mean", "shuffled"}) {
    EXPECT_TRUE(std::isnan(stepped("lars", settings_of(arm))->stability_limit())) << arm;
    EXPECT_TRUE(std::isnan(stepped("lamb", settings_of(arm))->stability_limit())) << arm;
  }
}

// On 1/2 h w^2 with a ratio of 0.5: below the limit weights shrink, above it they grow.
TEST(TrustArm, KeepsToThatLimit) {
  for (const double side : {0.98, 1.02}) {
    const std::vector<ParameterInfo> p{make_parameter("a.weight", ParameterKind::weight, {1.0})};
    const auto lars =
        make_test_optimizer("lars", {"trust=frozen", "trust_ratios=[\"a.weight=0.5\"]", "weight_decay=0"}, p);
    lars->set_learning_rate(side * lars->stability_limit() / (0.5 * 3));
    for (int t = 0; t < 200; ++t) {
      set_gradient(p[0], {3 * values_of(p[0].tensor)[0]});
      lars->step();
    }
    const double end = std::abs(values_of(p[0].tensor)[0]);
    EXPECT_TRUE(side < 1 ? end < 1e-3 : end > 1e3) << end;
  }
}

// docs/optimizers.md says which settings give LAMB without its ratio.
TEST(TrustArm, LambWithoutRatiosIsAdamW) {
  const std::vector<ParameterInfo> p = parameters(), q = parameters();
  const auto lamb = make_test_optimizer(
      "lamb", {"exclude_from_trust=[\"weight\", \"bias\", \"norm_weight\", \"norm_bias\"]"}, p);
  const auto adamw = make_test_optimizer("adamw", {"eps=1e-6"}, q);
  for (int t = 0; t < 5; ++t) {
    for (const auto& [optimizer, own] : {std::pair{lamb.get(), &p}, {adamw.get(), &q}}) {
      for (size_t i = 0; i < own->size(); ++i) set_gradient((*own)[i], kGradients[i]);
      optimizer->set_learning_rate(0.05);
      optimizer->step();
    }
  }
  for (size_t i = 0; i < p.size(); ++i)  // five steps of some roundings each
    EXPECT_LE((p[i].tensor - q[i].tensor).abs().max().item<double>(), 1e-14);
}

TEST(TrustArm, GivesTheGivenNumbers) {
  const auto ratios = [](const std::string& arm) {
    std::vector<double> found;
    for (const ParameterStep& step : stepped("lars", settings_of(arm))->last_step())
      found.push_back(step.trust_ratio);
    return std::vector<double>(found.begin(), found.begin() + 3);
  };
  EXPECT_EQ(ratios("frozen"), (std::vector<double>{0.5, 2, 7}));
  EXPECT_EQ(ratios("frozen_mean"), std::vector<double>(3, 9.5 / 3));
  const std::vector<double> shuffled = ratios("frozen_shuffled");
  EXPECT_THAT(shuffled, ::testing::UnorderedElementsAre(0.5, 2, 7));
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(shuffled[i], ratios("frozen")[i]) << "a tensor keeps its own";
}

// Three tensors have two cycles, and different numbers find both.
TEST(TrustArm, HasAPermutationForEachNumber) {
  std::set<double> first;
  for (int number = 0; number < 12; ++number) {
    std::vector<std::string> settings = settings_of("frozen_shuffled");
    settings.push_back(fmt::format("trust_shuffle={}", number));
    first.insert(stepped("lamb", settings)->last_step()[0].trust_ratio);
  }
  EXPECT_EQ(first, (std::set<double>{2, 7}));
}

TEST(TrustArm, SaysWhatTheReportedRatioIs) {
  EXPECT_THAT(stepped("lars", settings_of("frozen"))->trust_ratio_definition(), HasSubstr("given ratio"));
  EXPECT_THAT(stepped("lamb", settings_of("mean"))->trust_ratio_definition(),
              HasSubstr("mean over the tensors"));
  EXPECT_EQ(stepped("lamb", settings_of("live"))->trust_ratio_definition(),
            stepped("lamb", {})->trust_ratio_definition());
}

TEST(TrustArm, RefusesInOneLine) {
  const auto refusal = [](const std::vector<std::string>& settings) {
    return message_of([&] { make_test_optimizer("lars", settings, parameters()); });
  };
  EXPECT_EQ(refusal({"trust=frozen"}), "lars: trust = \"frozen\" needs trust_ratios or trust_from");
  EXPECT_EQ(refusal({"trust=frozen", "trust_ratios=[\"a.weight=1\", \"b.weight=1\"]"}),
            "lars: trust_ratios: none is given for \"c.weight\"");
  EXPECT_EQ(refusal({"trust=frozen", "trust_ratios=[\"d.bias=1\"]"}),
            "lars: trust_ratios: \"d.bias=1\" names no parameter that has a trust ratio");
  EXPECT_EQ(refusal({"trust=frozen", "trust_ratios=[\"e.weight=1\"]"}),
            "lars: trust_ratios: \"e.weight=1\" names no parameter that has a trust ratio");
  EXPECT_THAT(refusal({"trust_ratios=[\"a.weight=0\"]"}), HasSubstr("PARAMETER=RATIO, RATIO above 0"));
  EXPECT_THAT(refusal({"trust_ratios=[\"a.weight\"]"}), HasSubstr("PARAMETER=RATIO, RATIO above 0"));
  EXPECT_EQ(refusal({"trust=shuffled", "exclude_from_trust=[\"name:a.*\", \"name:b.*\", \"bias\"]"}),
            "lars: trust = \"shuffled\" needs at least 2 parameters with trust ratios, not 1");
  EXPECT_EQ(refusal({"trust=mean", "exclude_from_trust=[\"weight\", \"bias\"]"}),
            "lars: trust = \"mean\" needs at least 1 parameters with trust ratios, not 0");
}

}  // namespace
}  // namespace basin
