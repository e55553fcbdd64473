// Every method against traces computed in numpy from the printed formulas (tests/oracles/optim_golden.py).
#include <gtest/gtest.h>

#include "tests/optim/golden_traces.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

std::vector<ParameterInfo> start(at::ScalarType dtype) {
  std::vector<ParameterInfo> parameters;
  for (size_t i = 0; i < golden::names.size(); ++i) {
    parameters.push_back(
        make_parameter(golden::names[i], parameter_kind(golden::kinds[i]), golden::start[i], dtype));
  }
  return parameters;
}

std::vector<double> all_values(const std::vector<ParameterInfo>& parameters) {
  std::vector<double> all;
  for (const ParameterInfo& p : parameters) {
    for (double value : values_of(p.tensor)) all.push_back(value);
  }
  return all;
}

class Golden : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Traces, Golden, ::testing::Range<size_t>(0, golden::traces.size()),
                         [](const auto& info) {
                           return golden::traces[info.param].optimizer + std::to_string(info.param);
                         });

void follow(const golden::Trace& trace, at::ScalarType dtype, double tolerance) {
  const auto parameters = start(dtype);
  const auto optimizer = make_test_optimizer(trace.optimizer, trace.settings, parameters);
  for (size_t t = 0; t < trace.steps.size(); ++t) {
    std::vector<std::vector<double>> before;
    for (size_t i = 0; i < parameters.size(); ++i) {
      set_gradient(parameters[i], golden::gradients[t][i]);
      before.push_back(values_of(parameters[i].tensor));
    }
    optimizer->set_learning_rate(golden::rates[t]);
    optimizer->step();

    const auto got = all_values(parameters);
    ASSERT_EQ(got.size(), trace.steps[t].weights.size());
    for (size_t k = 0; k < got.size(); ++k) {
      EXPECT_NEAR(got[k], trace.steps[t].weights[k], tolerance) << "step " << t << " element " << k;
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ParameterStep& step = optimizer->last_step()[i];
      const double ratio = trace.steps[t].trust_ratios[i];
      EXPECT_EQ(std::isnan(step.trust_ratio), std::isnan(ratio)) << golden::names[i];
      if (!std::isnan(ratio)) {
        EXPECT_NEAR(step.trust_ratio, ratio, 10 * tolerance * (1 + ratio)) << golden::names[i];
      }
      EXPECT_NEAR(step.weight_norm, norm_by_hand(before[i]), tolerance);
      EXPECT_NEAR(step.gradient_norm, norm_by_hand(golden::gradients[t][i]), tolerance);
      auto change = values_of(parameters[i].tensor);
      for (size_t k = 0; k < change.size(); ++k) change[k] -= before[i][k];
      EXPECT_NEAR(step.update_norm, norm_by_hand(change), 4 * tolerance);
      EXPECT_EQ(values_of(parameters[i].tensor.grad()),
                values_of(at::tensor(golden::gradients[t][i], at::kDouble).to(dtype)));  // untouched
    }
  }
}

// Weights of order 1 to 3, about ten roundings each: 1e-14 in float64, 3e-6 in float32.
TEST_P(Golden, Float64) { follow(golden::traces[GetParam()], at::kDouble, 1e-13); }
TEST_P(Golden, Float32) { follow(golden::traces[GetParam()], at::kFloat, 3e-6); }

// The traces would not see a wrong placement if this failed: rates change, and the trust ratio does.
TEST(GoldenTraces, HaveChangingRatesAndRatios) {
  EXPECT_NE(golden::rates[0], golden::rates[1]);
  size_t with_ratio = 0;
  for (const golden::Trace& trace : golden::traces) {
    if (trace.optimizer != "lars") continue;
    ++with_ratio;
    EXPECT_NE(trace.steps[0].trust_ratios[0], trace.steps[1].trust_ratios[0]);
  }
  EXPECT_GE(with_ratio, 3U);
}

// One flat vector instead of tensors: layers' norms merge and the result must differ. If it agreed, the trust
// ratio would not be by layer.
TEST(GoldenTraces, FlattenedParametersDisagree) {
  for (const golden::Trace& trace : golden::traces) {
    if (trace.optimizer != "lars" && trace.optimizer != "lamb") continue;
    std::vector<double> flat;
    for (const auto& values : golden::start) flat.insert(flat.end(), values.begin(), values.end());
    const std::vector<ParameterInfo> parameters{make_parameter("all.weight", ParameterKind::weight, flat)};
    auto settings = trace.settings;
    settings.emplace_back("exclude_from_trust=[]");
    const auto optimizer = make_test_optimizer(trace.optimizer, settings, parameters);
    std::vector<double> gradient;
    for (const auto& values : golden::gradients[0])
      gradient.insert(gradient.end(), values.begin(), values.end());
    set_gradient(parameters[0], gradient);
    optimizer->set_learning_rate(golden::rates[0]);
    optimizer->step();
    const auto got = values_of(parameters[0].tensor);
    EXPECT_GT(std::abs(got[0] - trace.steps[0].weights[0]), 1e-5) << trace.optimizer;
  }
}

}  // namespace
}  // namespace basin
