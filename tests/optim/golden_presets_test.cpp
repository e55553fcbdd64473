// Every preset of LARS and LAMB against traces of what its code base does (tests/oracles/optim_presets.py).
#include <set>

#include "optim/lamb.h"
#include "optim/lars.h"
#include "tests/optim/follow_trace.h"
#include "tests/optim/golden_presets.h"

namespace basin {
namespace {

using namespace testing;

/// Weights of layers have two dimensions, all else one: some code bases go by that.
std::vector<ParameterInfo> scene_parameters(const golden::Scene& scene, at::ScalarType dtype) {
  std::vector<ParameterInfo> parameters;
  for (size_t i = 0; i < scene.names.size(); ++i) {
    const ParameterKind kind = parameter_kind(scene.kinds[i]);
    ParameterInfo parameter = make_parameter(scene.names[i], kind, scene.start[i], dtype);
    if (kind == ParameterKind::weight)
      parameter.tensor = parameter.tensor.detach().unsqueeze(0).requires_grad_(true);
    parameters.push_back(parameter);
  }
  return parameters;
}

class GoldenPreset : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Traces, GoldenPreset, ::testing::Range<size_t>(0, golden::preset_traces.size()),
                         [](const auto& info) {
                           const golden::PresetTrace& trace = golden::preset_traces[info.param];
                           return trace.optimizer + "_" + trace.preset + "_" + std::to_string(info.param);
                         });

void follow_preset(const golden::PresetTrace& trace, at::ScalarType dtype, double tolerance) {
  const auto parameters = scene_parameters(trace.scene, dtype);
  auto settings = trace.settings;
  settings.push_back("preset=" + trace.preset);  // last: what is set by hand stays
  const auto optimizer = make_test_optimizer(trace.optimizer, settings, parameters);
  follow_trace(*optimizer, parameters, trace.scene.gradients, trace.scene.rates, trace.steps, tolerance);
}

// Some ten roundings of numbers of their own size, and of sums of numbers up to ten times as large.
TEST_P(GoldenPreset, Float64) { follow_preset(golden::preset_traces[GetParam()], at::kDouble, 1e-13); }
TEST_P(GoldenPreset, Float32) { follow_preset(golden::preset_traces[GetParam()], at::kFloat, 1e-5); }

template <class O>
std::set<std::string> names(const std::vector<Preset<O>>& presets) {
  std::set<std::string> all;
  for (const Preset<O>& preset : presets) all.insert(preset.name);
  all.erase("basin");  // ours: golden_traces.h
  return all;
}

TEST(GoldenPresets, AreAllOfThem) {
  std::set<std::string> lars, lamb;
  for (const golden::PresetTrace& trace : golden::preset_traces)
    (trace.optimizer == "lars" ? lars : lamb).insert(trace.preset);
  EXPECT_EQ(lars, names(lars_presets()));
  EXPECT_EQ(lamb, names(lamb_presets()));
}

// Larc and Lambc are the two classes under another default.
TEST(GoldenPresets, LarcAndLambcAreApexAndTimm) {
  for (const golden::PresetTrace& trace : golden::preset_traces) {
    const bool larc = trace.optimizer == "lars" && trace.preset == "apex";
    if (!larc && !(trace.optimizer == "lamb" && trace.preset == "timm_clip")) continue;
    const auto parameters = scene_parameters(trace.scene, at::kDouble);
    const auto optimizer = make_test_optimizer(larc ? "larc" : "lambc", trace.settings, parameters);
    follow_trace(*optimizer, parameters, trace.scene.gradients, trace.scene.rates, trace.steps, 1e-13);
  }
}

}  // namespace
}  // namespace basin
