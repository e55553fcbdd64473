// The kernels against their twin on the CPU. Without a device the Gpu suite is skipped.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "optim/kernels/multi_tensor.h"
#include "tests/optim/odd_tensors.h"

namespace basin {
namespace {

using namespace testing;

class GpuOptimizer : public ::testing::TestWithParam<MethodAndPreset> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA())
      GTEST_SKIP() << "NO GPU: the kernels of optim/kernels/multi_tensor.cu are not tested here";
  }
  static std::vector<std::string> settings() { return settings_of(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Methods, GpuOptimizer, ::testing::ValuesIn(methods_and_presets()), NameOfMethod());

// Both compute in float64 (float32 weights: the CPU takes root and quotient of Adam's moments in float32) and round where they
// store; sums differ in their order, so ratios in the last places, and
// multiply-adds are fused on one side: in float64 some 1e-13 after five steps, in float32 a few roundings of 6e-8.
void expect_twins(const std::string& method, const std::vector<std::string>& settings) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12}, {at::kFloat, 2e-6}}) {
    const auto here = odd_tensors(at::kCPU, dtype), there = odd_tensors(at::kCUDA, dtype);
    const auto twin = make_test_optimizer(method, settings, here);
    const auto kernels = make_test_optimizer(method, settings, there);
    take_steps(*twin, here);
    take_steps(*kernels, there);
    for (size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(at::allclose(there[i].tensor.detach().cpu(), here[i].tensor.detach(), tolerance, tolerance))
          << here[i].name;
      const ParameterStep &a = twin->last_step()[i], &b = kernels->last_step()[i];
      EXPECT_NEAR(a.weight_norm, b.weight_norm, tolerance * (1 + a.weight_norm)) << here[i].name;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, tolerance * (1 + a.gradient_norm)) << here[i].name;
      EXPECT_NEAR(a.update_norm, b.update_norm, tolerance * (1 + a.weight_norm)) << here[i].name;
      EXPECT_EQ(std::isnan(a.trust_ratio), std::isnan(b.trust_ratio)) << here[i].name;
      if (!std::isnan(a.trust_ratio)) {
        EXPECT_NEAR(a.trust_ratio, b.trust_ratio, tolerance * (1 + a.trust_ratio)) << here[i].name;
      }
    }
  }
}

bool magnifies_rounding(const std::string& method) {
  const OptimizerEntry& entry = find_entry(optimizer_registry(), method, "optimizer");
  return entry.traits(*entry.make_options()).magnifies_rounding;
}

TEST_P(GpuOptimizer, EqualsItsTwin) {
  if (magnifies_rounding(GetParam().first))
    GTEST_SKIP() << "its basis is open here: SOAP's own test has one that isn't";
  expect_twins(GetParam().first, settings());
}

// Each tensor its own: of several chunks, of one, of less than a warp, empty.
TEST_P(GpuOptimizer, EqualsItsTwinWithFactors) {
  if (!find_entry(optimizer_registry(), GetParam().first, "optimizer").factors)
    GTEST_SKIP() << "has no factors";
  if (magnifies_rounding(GetParam().first)) GTEST_SKIP() << "its basis is open here";
  std::vector<std::string> with_factors = settings();
  with_factors.insert(
      with_factors.end(),
      {"weight_decay=0.1", "exclude_from_decay=[]", "decay_factors=[\"norm_weight=3\", \"bias=0.25\"]",
       "lr_factors=[\"weight=0.5\", \"name:conv.*=2\", \"norm_weight=4\", \"name:none*=7\"]"});
  expect_twins(GetParam().first, with_factors);
}

// Square matrices of full rank leave no direction open: rounding of 1e-16 over gaps of a hundredth, five updates long.
TEST(GpuSoap, EqualsItsTwinWhereGradientsDecideItsBases) {
  if (!at::hasCUDA()) GTEST_SKIP() << "NO GPU: SOAP is not compared here";
  std::vector<at::Tensor> ends;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    at::Generator generator = make_generator(3);
    const at::Tensor w = at::empty({6, 6}, at::kDouble).normal_(0, 1, generator).to(device);
    const std::vector<ParameterInfo> one{{"fc.weight", "fc", ParameterKind::weight, w.requires_grad_(true)}};
    const auto soap = make_test_optimizer("soap", {"precondition_frequency=2", "eps=1e-4"}, one);
    take_steps(*soap, one);
    ends.push_back(one[0].tensor.detach().cpu());
  }
  EXPECT_TRUE(at::allclose(ends[0], ends[1], 0, 1e-9));
}

TEST_P(GpuOptimizer, IsTheSameBitForBitEachTime) {
  const auto once = odd_tensors(at::kCUDA, at::kFloat), again = odd_tensors(at::kCUDA, at::kFloat);
  take_steps(*make_test_optimizer(GetParam().first, settings(), once), once);
  take_steps(*make_test_optimizer(GetParam().first, settings(), again), again);
  for (size_t i = 0; i < once.size(); ++i)
    EXPECT_TRUE(at::equal(once[i].tensor, again[i].tensor)) << once[i].name;
}

// Sums of squares in another order, in float64 on both sides.
TEST(GpuDistance, EqualsItsTwin) {
  if (!at::hasCUDA()) GTEST_SKIP() << "NO GPU: distances from the start are not computed there";
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    std::vector<at::Tensor> here, start, there, start_there;
    at::Generator generator = make_generator(5);
    for (const ParameterInfo& parameter : odd_tensors(at::kCPU, dtype)) {
      start.push_back(parameter.tensor.detach());
      here.push_back(start.back() + at::empty_like(start.back()).normal_(0, 1e-3, generator));
      there.push_back(here.back().to(at::kCUDA));
      start_there.push_back(start.back().to(at::kCUDA));
    }
    std::shared_ptr<KernelTables> none, tables;
    const double expected = squared_distance(here, start, none);
    EXPECT_GT(expected, 0);
    for (int i = 0; i < 2; ++i)  // laid out anew, and as before
      EXPECT_NEAR(squared_distance(there, start_there, tables), expected, 1e-13 * expected);
  }
}

}  // namespace
}  // namespace basin
