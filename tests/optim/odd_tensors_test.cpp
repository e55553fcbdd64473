// What the comparisons on a GPU are made with has no fault of its own: every method takes each of the tensors.
#include "tests/optim/odd_tensors.h"

namespace basin::testing {
namespace {

class OddTensors : public ::testing::TestWithParam<MethodAndPreset> {};
INSTANTIATE_TEST_SUITE_P(Methods, OddTensors, ::testing::ValuesIn(methods_and_presets()), NameOfMethod());

TEST_P(OddTensors, AreStepped) {
  const auto parameters = odd_tensors(at::kCPU, at::kFloat);
  take_steps(*make_test_optimizer(GetParam().first, settings_of(GetParam()), parameters), parameters);
  for (const ParameterInfo& p : parameters) {
    EXPECT_TRUE(at::isfinite(p.tensor.detach()).all().item<bool>()) << p.name;
  }
}

}  // namespace
}  // namespace basin::testing
