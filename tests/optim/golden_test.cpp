// Every method against traces computed in numpy from the printed formulas (tests/oracles/optim_golden.py).
#include <gtest/gtest.h>

#include "tests/optim/follow_trace.h"
#include "tests/optim/golden_traces.h"

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

/// Whether something stands in the place of its trust ratios, which may be one number for all and for ever.
bool has_arm(const golden::Trace& trace) {
  return std::any_of(trace.settings.begin(), trace.settings.end(),
                     [](const std::string& setting) { return setting.rfind("trust=", 0) == 0; });
}

class Golden : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Traces, Golden, ::testing::Range<size_t>(0, golden::traces.size()),
                         [](const auto& info) {
                           return golden::traces[info.param].optimizer + std::to_string(info.param);
                         });

void follow(const golden::Trace& trace, at::ScalarType dtype, double tolerance) {
  const auto parameters = start(dtype);
  const auto optimizer = make_test_optimizer(trace.optimizer, trace.settings, parameters);
  follow_trace(*optimizer, parameters, golden::gradients, golden::rates, trace.steps, tolerance);
}

// Weights of order 1 to 3, about ten roundings each: 1e-14 in float64, 3e-6 in float32.
TEST_P(Golden, Float64) { follow(golden::traces[GetParam()], at::kDouble, 1e-13); }
TEST_P(Golden, Float32) { follow(golden::traces[GetParam()], at::kFloat, 3e-6); }

// The traces would not see a wrong placement if this failed: rates change, and the trust ratio does.
TEST(GoldenTraces, HaveChangingRatesAndRatios) {
  EXPECT_NE(golden::rates[0], golden::rates[1]);
  size_t with_ratio = 0;
  for (const golden::Trace& trace : golden::traces) {
    if (trace.optimizer != "lars" || has_arm(trace)) continue;
    ++with_ratio;
    EXPECT_NE(trace.steps[0].trust_ratios[0], trace.steps[1].trust_ratios[0]);
  }
  EXPECT_GE(with_ratio, 3U);
}

// One flat vector instead of tensors: layers' norms merge and the result must differ. If it agreed, the trust
// ratio would not be by layer.
TEST(GoldenTraces, FlattenedParametersDisagree) {
  for (const golden::Trace& trace : golden::traces) {
    if ((trace.optimizer != "lars" && trace.optimizer != "lamb") || has_arm(trace)) continue;
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
