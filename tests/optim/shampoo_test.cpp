// Shampoo from matrices whose singular values and vectors are chosen, and where its factors are diagonal.
#include "optim/matrix/shampoo.h"

#include <gtest/gtest.h>

#include "tests/optim/matrices.h"
#include "tests/optim/optim_support.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using namespace testing;

const std::string kPlain = "momentum=0";

// L = R = eps + sum of g^2 on the diagonal: the product of two fourth roots, Adagrad with eps within the root.
TEST(Shampoo, OfDiagonalGradientsIsAdagrad) {
  const std::vector<ParameterInfo> one{weight_of(at::zeros({3, 3}, at::kDouble))};
  const auto shampoo = make_test_optimizer("shampoo", {kPlain, "eps=0.25"}, one);
  std::vector<double> w(3), sum(3, 0.25);
  for (int t = 1; t <= 5; ++t) {
    std::vector<double> g{0.5 * t, -2.0 / t, t == 3 ? 4.0 : 0.0};
    step(*shampoo, one[0], at::diag(at::tensor(g, at::kDouble)), 0.1 / t);
    for (size_t j = 0; j < 3; ++j) {
      sum[j] += g[j] * g[j];
      w[j] -= 0.1 / t * g[j] / std::sqrt(sum[j]);
    }
    // Float64: an eigendecomposition and two powers.
    EXPECT_TRUE(at::allclose(one[0].tensor.detach(), at::diag(at::tensor(w, at::kDouble)), 0, 1e-14)) << t;
  }
}

// G = U S V': L = U (S^2 + eps) U', so each singular value becomes s / (s^2 + eps)^(2p), vectors stay.
TEST(Shampoo, TakesRootsOfSingularValues) {
  const Factored f = factored(5, 3);
  const std::vector<double> values{3, 1, 0.2};
  for (const auto& [setting, p] : {std::pair<std::string, double>{"exponent=0", 0.25},
                                   {"exponent=0.5", 0.5},
                                   {"exponent=0.125", 0.125}}) {
    const std::vector<ParameterInfo> one{weight_of(at::ones({5, 3}, at::kDouble))};
    const auto shampoo =
        make_test_optimizer("shampoo", {kPlain, setting, "eps=1e-3", "weight_decay=0.5"}, one);
    std::vector<double> expected;
    for (const double s : values) expected.push_back(s / std::pow(s * s + 1e-3, 2 * p));
    step(*shampoo, one[0], f.matrix(values), 0.1);
    EXPECT_TRUE(at::allclose(one[0].tensor.detach(), 0.95 - 0.1 * f.matrix(expected), 0, 1e-13)) << setting;
  }
}

// One gradient of a vector is an eigenvector: g / sqrt(|g|^2 + eps); a second one at a right angle knows nothing of it.
TEST(Shampoo, OfAVectorIsAdagradWithAFullMatrix) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {0, 0})};
  const auto shampoo = make_test_optimizer("shampoo", {kPlain, "eps=1"}, one);
  const at::Tensor first = at::tensor({3.0, 4.0}, at::kDouble), second = at::tensor({-8.0, 6.0}, at::kDouble);
  step(*shampoo, one[0], first, 1);
  EXPECT_TRUE(at::allclose(one[0].tensor.detach(), -first / std::sqrt(26.0), 0, 1e-14));
  step(*shampoo, one[0], second, 1);
  EXPECT_TRUE(
      at::allclose(one[0].tensor.detach(), -first / std::sqrt(26.0) - second / std::sqrt(101.0), 0, 1e-14));
}

// Rows alone have a matrix: (G G' + eps)^(-1/4) on the left, and on the right a fourth root of the columns' squares.
TEST(Shampoo, KeepsTheDiagonalOfLargeDimensions) {
  at::Generator generator = make_generator(3);
  const at::Tensor g = at::empty({2, 4}, at::kDouble).normal_(0, 1, generator);
  const std::vector<ParameterInfo> one{weight_of(at::zeros({2, 4}, at::kDouble))};
  const auto shampoo = make_test_optimizer("shampoo", {kPlain, "max_dimension=3", "eps=0.5"}, one);
  step(*shampoo, one[0], g, 1);
  // A 2 x 2 matrix's fourth root by its closed form of a square root, twice: (A + sqrt(det) I) / sqrt(tr A + 2 sqrt(det)).
  at::Tensor root = at::mm(g, g.t()) + 0.5 * at::eye(2, at::kDouble);
  for (int i = 0; i < 2; ++i) {
    const double d = std::sqrt((root[0][0] * root[1][1] - root[0][1] * root[1][0]).item<double>());
    root = (root + d * at::eye(2, at::kDouble)) / std::sqrt(root.trace().item<double>() + 2 * d);
  }
  const at::Tensor columns = (g.square().sum(0) + 0.5).pow(0.25);
  EXPECT_TRUE(at::allclose(at::mm(root, one[0].tensor.detach()) * columns, -g, 0, 1e-13));
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, tensor] : shampoo->state()) sizes[name] = tensor.numel();
  EXPECT_EQ(sizes["statistic0/fc.weight"], 4);
  EXPECT_EQ(sizes["statistic1/fc.weight"], 4);
  EXPECT_EQ(sizes["root0/fc.weight"], 4);
}

// A constant gradient: with averages steps stay as they are, with sums they fall as 1/sqrt(t); roots that are taken every third
// update stay what they were.
TEST(Shampoo, AccumulatesAndRefreshesAsItIsTold) {
  const auto steps = [](std::vector<std::string> settings) {
    const std::vector<ParameterInfo> one{weight_of(at::zeros({2, 2}, at::kDouble))};
    settings.insert(settings.end(), {kPlain, "eps=1e-12"});
    const auto shampoo = make_test_optimizer("shampoo", settings, one);
    std::vector<double> moved;
    for (int t = 1; t <= 6; ++t) {
      const double before = one[0].tensor[0][0].item<double>();
      step(*shampoo, one[0], at::diag(at::tensor({0.5, 4.0}, at::kDouble)), 1);
      moved.push_back(before - one[0].tensor[0][0].item<double>());
    }
    return moved;
  };
  const auto by_average = steps({"accumulation=average", "beta2=0.9"}), by_sum = steps({}),
             lazily = steps({"precondition_frequency=3"});
  for (size_t t = 0; t < 6; ++t) {
    EXPECT_NEAR(by_average[t], 1, 1e-11);  // eps against squares of a quarter
    EXPECT_NEAR(by_sum[t], 1 / std::sqrt(1.0 + static_cast<double>(t)), 1e-11);
    EXPECT_NEAR(lazily[t], t < 3 ? 1 : 0.5, 1e-11);
  }
}

TEST(Shampoo, OfGradientsThatAreNotFiniteIsNoError) {
  const std::vector<ParameterInfo> one{weight_of(at::zeros({2, 2}, at::kDouble))};
  const auto shampoo = make_test_optimizer("shampoo", {}, one);
  EXPECT_NO_THROW(step(*shampoo, one[0], at::full({2, 2}, NAN, at::kDouble), 1));
  EXPECT_TRUE(one[0].tensor.isnan().all().item<bool>());
}

TEST(Shampoo, RefusesBadOptionsInOneLine) {
  for (const std::string bad :
       {"eps=0", "exponent=1.5", "accumulation=mean", "precondition_frequency=0", "max_dimension=0"}) {
    const std::string message = message_of([&] {
      make_test_optimizer("shampoo", {bad}, {weight_of(at::ones({2, 2}, at::kDouble))});
    });
    EXPECT_NE(message.find(bad.substr(0, bad.find('='))), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace basin
