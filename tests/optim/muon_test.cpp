// Muon's directions: from matrices whose singular values and vectors are chosen, by hand, and next to AdamW.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "optim/matrix/muon.h"
#include "tests/optim/matrices.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

const std::vector<double> kValues{3, 1, 0.2, 0.01};

// Each singular value goes its own way by the published polynomial, from s / |S|; vectors stay.
TEST(NewtonSchulz, IsThePolynomialOfEachSingularValue) {
  for (const auto& [rows, columns] : {std::pair{6, 4}, {4, 6}, {4, 4}}) {
    const Factored f = factored(rows, columns);
    double squares = 0;
    for (const double s : kValues) squares += s * s;
    std::vector<double> expected;
    for (const double s : kValues) {
      double x = s / (std::sqrt(squares) + 1e-7);
      for (int i = 0; i < 5; ++i) x = 3.4445 * x - 4.7750 * x * x * x + 2.0315 * std::pow(x, 5);
      expected.push_back(x);
    }
    EXPECT_GT(expected[0], 0.6);
    EXPECT_LT(expected[0], 1.3);
    // Float64, some twenty products of numbers near 1, magnified up to 3.4^5 = 480 times in the smallest.
    EXPECT_TRUE(at::allclose(newton_schulz(f.matrix(kValues), 5), f.matrix(expected), 0, 1e-12));
  }
}

// One step from a state of zeros: Nesterov or not, D is a multiple of the gradient, so the step is s lr U V'.
TEST(Muon, ExactStepsHaveTheSingularVectorsOfTheGradient) {
  const Factored f = factored(6, 4);
  const at::Tensor uv = f.matrix({1, 1, 1, 1});
  for (const auto& [adjust, scale] :
       {std::pair{"adjust=rms", 0.2 * std::sqrt(6.0)}, {"adjust=spectral", std::sqrt(6.0 / 4)}}) {
    for (const char* nesterov : {"nesterov=true", "nesterov=false"}) {
      const std::vector<ParameterInfo> one{weight_of(at::ones({6, 4}, at::kDouble))};
      const auto muon =
          make_test_optimizer("muon", {"orthogonalise=exact", adjust, nesterov, "weight_decay=0.5"}, one);
      at::Tensor(one[0].tensor).mutable_grad() = f.matrix(kValues);
      muon->set_learning_rate(0.1);
      muon->step();
      // w = 1 shrinks by lr wd = 0.05. The smallest singular value is 300 times below the largest: 1e-13 of its vectors.
      EXPECT_TRUE(at::allclose(one[0].tensor.detach(), 0.95 - 0.1 * scale * uv, 0, 1e-12)) << adjust;
    }
  }
}

// A dead unit has a row of zeros: it stays where it is, and so does a matrix without any gradient. Newton and Schulz agree.
TEST(Muon, ExactStepsLeaveAloneWhatHasNoGradient) {
  const Factored f = factored(6, 4);
  at::Tensor dead = f.matrix(kValues).clone();
  dead[2].zero_();
  for (const at::Tensor& gradient : {dead, at::zeros({6, 4}, at::kDouble)}) {
    const std::vector<ParameterInfo> one{weight_of(at::ones({6, 4}, at::kDouble))};
    const auto muon = make_test_optimizer("muon", {"orthogonalise=exact", "adjust=spectral"}, one);
    at::Tensor(one[0].tensor).mutable_grad() = gradient;
    muon->set_learning_rate(0.1);
    muon->step();
    const at::Tensor moved = one[0].tensor.detach() - 1, row = gradient[2];
    EXPECT_LE(moved[2].abs().max().item<double>(), 1e-12);
    if (gradient.count_nonzero().item<int64_t>() == 0) {
      EXPECT_TRUE(moved.equal(at::zeros_like(moved)));
    }
  }
}

// Momentum over two steps, by hand: m = 0.5 (0.5 g1) + 0.5 g2, and with Nesterov 0.5 m + 0.5 g2. The gradients have the same
// singular vectors, so UV' of any positive sum of them is one matrix; of g1 - 2 g2, a negative one, minus that.
TEST(Muon, MomentumIsBlendedBeforeItIsOrthogonalised) {
  const Factored f = factored(3, 3);
  const at::Tensor g = f.matrix({2, 1, 0.5}), uv = f.matrix({1, 1, 1});
  for (const auto& [nesterov, second] : {std::pair{"nesterov=false", 1.0}, {"nesterov=true", -1.0}}) {
    const std::vector<ParameterInfo> one{weight_of(at::zeros({3, 3}, at::kDouble))};
    const auto muon = make_test_optimizer(
        "muon", {"orthogonalise=exact", "adjust=spectral", "momentum=0.5", nesterov}, one);
    muon->set_learning_rate(1);
    for (const double sign : {1.0, -0.4}) {  // m = 0.25 g - 0.2 g = 0.05 g; the look-ahead 0.025 g - 0.2 g
      at::Tensor(one[0].tensor).mutable_grad() = sign * g;
      muon->step();
    }
    EXPECT_TRUE(at::allclose(one[0].tensor.detach(), -(1 + second) * uv, 0, 1e-12)) << nesterov;
  }
}

// A filter of a convolution is a row, whatever its layout in memory.
TEST(Muon, TakesFiltersAsRows) {
  at::Generator generator = make_generator(9);
  const at::Tensor w = at::empty({5, 2, 3, 3}, at::kDouble).normal_(0, 1, generator);
  const at::Tensor g = at::empty({5, 2, 3, 3}, at::kDouble).normal_(0, 1, generator);
  const std::vector<ParameterInfo> flat{weight_of(w.reshape({5, 18}))};
  const std::vector<ParameterInfo> filters{weight_of(w.contiguous(at::MemoryFormat::ChannelsLast))};
  at::Tensor(flat[0].tensor).mutable_grad() = g.reshape({5, 18});
  at::Tensor(filters[0].tensor).mutable_grad() = g;
  for (const auto* parameters : {&flat, &filters}) {
    const auto muon = make_test_optimizer("muon", {}, *parameters);
    muon->set_learning_rate(0.1);
    muon->step();
  }
  EXPECT_TRUE(at::allclose(filters[0].tensor.detach().reshape({5, 18}), flat[0].tensor.detach(), 0, 1e-14));
  EXPECT_FALSE(at::equal(flat[0].tensor.detach(), w.reshape({5, 18})));
}

// What isn't a matrix, and what is listed, goes as under AdamW at a rate of its own. AdamW's passes take root and quotient
// in another order: float64 roundings.
TEST(Muon, LeavesTheRestToAdamW) {
  const auto parameters = [] {
    return std::vector<ParameterInfo>{
        weight_of(at::full({2, 3}, 0.5, at::kDouble), "head.weight"),
        {"fc.bias", "fc", ParameterKind::bias, at::tensor({0.25, -0.75}, at::kDouble).requires_grad_(true)}};
  };
  const auto ours = parameters(), theirs = parameters();
  const auto muon = make_test_optimizer(
      "muon", {"by_adam=[\"name:head.*\"]", "adam_rate=0.5", "weight_decay=0.1", "beta2=0.99"}, ours);
  const auto adamw = make_test_optimizer("adamw", {"weight_decay=0.2", "beta2=0.99"}, theirs);
  for (int t = 0; t < 3; ++t) {
    for (const auto* list : {&ours, &theirs}) {
      at::Generator generator = make_generator(static_cast<uint64_t>(20 + t));
      for (const ParameterInfo& p : *list)
        at::Tensor(p.tensor).mutable_grad() = at::empty_like(p.tensor).normal_(0, 1, generator);
    }
    muon->set_learning_rate(0.02 * (t + 1));
    adamw->set_learning_rate(0.01 * (t + 1));  // its decay is twice as large, so lr wd is the same
    muon->step();
    adamw->step();
  }
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i].tensor, theirs[i].tensor, 1e-13, 1e-14)) << ours[i].name;
}

TEST(Muon, HasASecondMomentOnlyOfTheRest) {
  const std::vector<ParameterInfo> both{weight_of(at::ones({2, 3}, at::kDouble)),
                                        weight_of(at::ones({4}, at::kDouble), "scale.weight")};
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, tensor] : make_test_optimizer("muon", {}, both)->state())
    sizes[name] = tensor.numel();
  EXPECT_EQ(sizes["second_moment/fc.weight"], 0);
  EXPECT_EQ(sizes["second_moment/scale.weight"], 4);
  EXPECT_EQ(sizes["momentum/fc.weight"], 6);
}

}  // namespace
}  // namespace basin
