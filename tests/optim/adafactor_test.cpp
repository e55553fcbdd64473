// Adafactor where its factors are exact, where it clips, and what is a matrix of it.
#include "optim/matrix/adafactor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "tests/optim/matrices.h"
#include "tests/optim/optim_support.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using namespace testing;

void give(const ParameterInfo& parameter, const at::Tensor& gradient) {
  at::Tensor(parameter.tensor).mutable_grad() = gradient;
}

at::Tensor drawn(std::vector<int64_t> sizes, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return at::empty(sizes, at::kDouble).normal_(0, 1, generator);
}

// |g_ij| = a_i b_j: R C / mean(R) is g^2 itself, so each element steps by its sign times lr RMS(w).
TEST(Adafactor, FactorsOfRankOneAreExact) {
  const at::Tensor signs = drawn({3, 4}, 1).sign();
  const at::Tensor g = signs * at::outer(at::tensor({1.0, 100.0, 1e-3}, at::kDouble),
                                         at::tensor({2.0, 1e-4, 0.5, 7.0}, at::kDouble));
  const std::vector<ParameterInfo> one{weight_of(at::full({3, 4}, 2.0, at::kDouble))};
  const auto adafactor = make_test_optimizer("adafactor", {}, one);
  adafactor->set_learning_rate(0.01);
  give(one[0], g);
  adafactor->step();
  EXPECT_TRUE(at::allclose(one[0].tensor.detach(), 2 - 0.02 * signs, 0, 1e-14));
  EXPECT_NEAR(adafactor->last_step()[0].trust_ratio, 2, 1e-14);
  // eps2 takes the place of weights of 0.
  const std::vector<ParameterInfo> zero{weight_of(at::zeros({3, 4}, at::kDouble))};
  const auto from_zero = make_test_optimizer("adafactor", {"eps2=0.5"}, zero);
  from_zero->set_learning_rate(0.01);
  give(zero[0], g);
  from_zero->step();
  EXPECT_TRUE(at::allclose(zero[0].tensor.detach(), -0.005 * signs, 0, 1e-15));
}

// The second gradient is ten times the first: u = 10 / sqrt(beta2 + 100 (1 - beta2)) with beta2 = 1 - 2^-0.8, above 1.
TEST(Adafactor, ClipsTheRootMeanSquareOfAStep) {
  const double share = std::pow(2.0, -0.8), u = 10 / std::sqrt(1 - share + 100 * share);
  ASSERT_GT(u, 1.2);
  for (const auto& [setting, clip] : {std::pair<std::string, double>{"clip_threshold=1", u},
                                      {"clip_threshold=1.2", u / 1.2},
                                      {"clip_threshold=2", 1},
                                      {"clip_threshold=0", 1}}) {
    const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {1, -1})};
    const auto adafactor = make_test_optimizer("adafactor", {setting, "scale_parameter=false"}, one);
    adafactor->set_learning_rate(0.125);
    set_gradient(one[0], {0.25, -0.5});
    adafactor->step();
    const std::vector<double> before = values_of(one[0].tensor);
    EXPECT_EQ(before, (std::vector<double>{0.875, -0.875})) << setting;
    set_gradient(one[0], {2.5, -5});
    adafactor->step();
    EXPECT_NEAR(values_of(one[0].tensor)[0], before[0] - 0.125 * u / clip, 1e-15) << setting;
    EXPECT_NEAR(adafactor->last_step()[0].trust_ratio, 1 / clip, 1e-15) << setting;
  }
}

// Signs of a constant gradient: 1 + 1/sqrt(2) + ... of the weights' scale, where lr doesn't bound it.
TEST(Adafactor, RelativeStepsFallWithTime) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {0, 0})};
  const auto adafactor =
      make_test_optimizer("adafactor", {"relative_step=true", "scale_parameter=false"}, one);
  double expected = 0;
  for (int t = 1; t <= 6; ++t) {
    const double lr = t < 4 ? 10 : 0.3;  // 1/sqrt(4), 1/sqrt(5), 1/sqrt(6) are above
    expected -= std::min(lr, 1 / std::sqrt(t));
    adafactor->set_learning_rate(lr);
    set_gradient(one[0], {0.5, 0.5});
    adafactor->step();
    EXPECT_NEAR(values_of(one[0].tensor)[0], expected, 1e-14) << t;
  }
}

// Filters are rows of one matrix; with last_two each kernel is a matrix by itself.
TEST(Adafactor, SaysWhatIsAMatrixOfAConvolution) {
  const at::Tensor w = drawn({2, 3, 2, 2}, 3);
  const std::vector<std::string> by_elements{"scale_parameter=false", "clip_threshold=0"};
  const std::vector<ParameterInfo> flat{weight_of(w.reshape({2, 12}))};
  const std::vector<ParameterInfo> filters{weight_of(w.contiguous(at::MemoryFormat::ChannelsLast))};
  const std::vector<ParameterInfo> kernels{weight_of(w)};
  std::vector<ParameterInfo> apart;
  for (int64_t k = 0; k < 6; ++k)
    apart.push_back(weight_of(w.reshape({6, 2, 2})[k], fmt::format("kernel{}.weight", k)));
  auto last_two = by_elements;
  last_two.emplace_back("factored=last_two");
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  optimizers.push_back(make_test_optimizer("adafactor", by_elements, flat));
  optimizers.push_back(make_test_optimizer("adafactor", by_elements, filters));
  optimizers.push_back(make_test_optimizer("adafactor", last_two, kernels));
  optimizers.push_back(make_test_optimizer("adafactor", by_elements, apart));
  for (uint64_t t = 0; t < 3; ++t) {
    const at::Tensor g = drawn({2, 3, 2, 2}, 10 + t);
    give(flat[0], g.reshape({2, 12}));
    give(filters[0], g);
    give(kernels[0], g);
    for (int64_t k = 0; k < 6; ++k) give(apart[static_cast<size_t>(k)], g.reshape({6, 2, 2})[k]);
    for (const auto& optimizer : optimizers) {
      optimizer->set_learning_rate(0.1);
      optimizer->step();
    }
  }
  EXPECT_TRUE(at::allclose(filters[0].tensor.detach().reshape({2, 12}), flat[0].tensor.detach(), 0, 1e-14));
  for (int64_t k = 0; k < 6; ++k) {
    EXPECT_TRUE(at::allclose(kernels[0].tensor.detach().reshape({6, 2, 2})[k],
                             apart[static_cast<size_t>(k)].tensor.detach(), 0, 1e-14));
  }
  EXPECT_FALSE(at::allclose(kernels[0].tensor.detach(), filters[0].tensor.detach(), 0, 1e-3));
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, tensor] : optimizers[1]->state()) sizes[name] = tensor.numel();
  EXPECT_EQ(sizes["row_moment/fc.weight"], 2);
  EXPECT_EQ(sizes["column_moment/fc.weight"], 12);
  EXPECT_EQ(sizes["second_moment/fc.weight"], 0);
}

// Products of two eps1 are 0 in float32, and 0/0 would be the step.
TEST(Adafactor, WithoutAGradientNothingMoves) {
  const at::Tensor w = drawn({3, 4}, 5).to(at::kFloat);
  const std::vector<ParameterInfo> one{weight_of(w)};
  const auto adafactor = make_test_optimizer("adafactor", {}, one);
  adafactor->set_learning_rate(1);
  give(one[0], at::zeros({3, 4}));
  adafactor->step();
  EXPECT_TRUE(at::equal(one[0].tensor.detach(), w));
}

TEST(Adafactor, ThreadsChangeNoBitOfAMatrix) {
  std::vector<at::Tensor> after;
  const int before = at::get_num_threads();
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    const std::vector<ParameterInfo> one{weight_of(drawn({301, 517}, 6).to(at::kFloat))};
    const auto adafactor = make_test_optimizer("adafactor", {}, one);
    adafactor->set_learning_rate(0.1);
    for (uint64_t t = 0; t < 2; ++t) {
      give(one[0], drawn({301, 517}, 20 + t).to(at::kFloat));
      adafactor->step();
    }
    after.push_back(one[0].tensor.detach());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(after[0], after[1]));
}

TEST(Adafactor, RefusesBadOptionsInOneLine) {
  for (const std::string bad :
       {"eps1=0", "clip_threshold=-1", "factored=rows", "beta1=1.0", "decay_rate=-0.8"}) {
    const std::string message = message_of([&] {
      make_test_optimizer("adafactor", {bad}, {weight_of(at::ones({2, 2}, at::kDouble))});
    });
    EXPECT_NE(message.find(bad.substr(0, bad.find('='))), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace basin
