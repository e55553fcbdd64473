// SOAP: Adam where it has no bases, Adam of singular values where gradients share their vectors, and what becomes of the bases.
#include "optim/matrix/soap.h"

#include <gtest/gtest.h>

#include "tests/optim/matrices.h"
#include "tests/optim/optim_support.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using namespace testing;

std::map<std::string, at::Tensor> state_of(const Optimizer& optimizer) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : optimizer.state()) found[name] = tensor;
  return found;
}

// Without eps, whose place differs. AdamW's passes take root and quotient in another order.
TEST(Soap, WithoutBasesIsAdamW) {
  const auto parameters = [] {
    return std::vector<ParameterInfo>{weight_of(at::full({2, 3}, 0.5, at::kDouble)),
                                      make_parameter("fc.bias", ParameterKind::bias, {0.25, -0.75})};
  };
  const auto ours = parameters(), theirs = parameters();
  const auto soap = make_test_optimizer("soap", {"max_dimension=1", "eps=0", "weight_decay=0.1"}, ours);
  const auto adamw =
      make_test_optimizer("adamw", {"beta1=0.95", "beta2=0.95", "eps=0", "weight_decay=0.1"}, theirs);
  for (int t = 0; t < 4; ++t) {
    for (const auto* list : {&ours, &theirs}) {
      at::Generator generator = make_generator(static_cast<uint64_t>(20 + t));
      for (const ParameterInfo& p : *list)
        at::Tensor(p.tensor).mutable_grad() = at::empty_like(p.tensor).normal_(0, 1, generator);
    }
    for (Optimizer* optimizer : {soap.get(), adamw.get()}) {
      optimizer->set_learning_rate(0.02 * (t + 1));
      optimizer->step();
    }
  }
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i].tensor, theirs[i].tensor, 1e-13, 1e-14)) << ours[i].name;
}

/// Adam of one number, eps added before the correction of v.
struct ScalarAdam {
  double beta1, beta2, eps, m = 0, v = 0, w = 0;
  int t = 0;
  void step(double g, double rate) {
    ++t;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= rate * m / (1 - std::pow(beta1, t)) / ((std::sqrt(v) + eps) / std::sqrt(1 - std::pow(beta2, t)));
  }
};

// G_t = U D_t V': the bases are U and V whatever the order of their columns, which falls in with the statistics at each refresh, so
// each singular direction goes Adam's way by itself. The second overtakes the first.
TEST(Soap, IsAdamOfSingularValuesWhereGradientsShareTheirVectors) {
  const Factored f = factored(4, 4);
  const std::vector<ParameterInfo> one{weight_of(at::zeros({4, 4}, at::kDouble))};
  const auto soap = make_test_optimizer(
      "soap", {"beta1=0.8", "beta2=0.7", "eps=1e-3", "weight_decay=0", "precondition_frequency=2"}, one);
  std::vector<ScalarAdam> adams(4, {0.8, 0.7, 1e-3});
  for (int t = 1; t <= 9; ++t) {
    const std::vector<double> values{2 - 0.3 * t, 0.5 * t, -0.1 * t, 0.7 + 0.02 * t};
    step(*soap, one[0], f.matrix(values), 0.1 / t);
    std::vector<double> w;
    for (size_t j = 0; j < 4; ++j) {
      adams[j].step(values[j], 0.1 / t);
      w.push_back(adams[j].w);
    }
    // Off the diagonal are roundings of 1e-16 over eps.
    EXPECT_TRUE(at::allclose(one[0].tensor.detach(), f.matrix(w), 0, 1e-12)) << t;
  }
  const auto state = state_of(*soap);
  const at::Tensor statistics =
      at::mm(at::mm(state.at("basis0/fc.weight").t(), state.at("statistic0/fc.weight")),
             state.at("basis0/fc.weight"));
  const at::Tensor values = at::diagonal(statistics);
  EXPECT_TRUE(at::allclose(statistics, at::diag(values), 0, 1e-13));
}

// Each refresh is a step of a power iteration: after many the basis has the statistic's eigenvectors, largest first.
TEST(Soap, BasesTurnIntoEigenvectors) {
  const std::vector<ParameterInfo> one{weight_of(at::zeros({3, 3}, at::kDouble))};
  const auto soap = make_test_optimizer("soap", {"beta2=0.5", "precondition_frequency=1"}, one);
  at::Generator generator = make_generator(8);
  step(*soap, one[0], at::empty({3, 3}, at::kDouble).normal_(0, 1, generator), 0.1);  // the first basis
  const at::Tensor g = factored(3, 3).matrix({3, 2, 1});
  for (int t = 0; t < 60; ++t) step(*soap, one[0], g, 0.1);
  const auto state = state_of(*soap);
  for (const char* side : {"0", "1"}) {
    const at::Tensor q = state.at(fmt::format("basis{}/fc.weight", side));
    EXPECT_TRUE(at::allclose(at::mm(q.t(), q), at::eye(3, at::kDouble), 0, 1e-14));
    const at::Tensor gram = side[0] == '0' ? at::mm(g, g.t()) : at::mm(g.t(), g);
    // (4/9)^60 of the angle that there was, and 2^-60 of the first gradient's statistic.
    EXPECT_TRUE(at::allclose(at::mm(at::mm(q.t(), gram), q),
                             at::diag(at::tensor({9.0, 4.0, 1.0}, at::kDouble)), 0, 1e-12));
  }
}

// What the authors' code does: the first gradient makes the basis and nothing else.
TEST(Soap, CanSkipTheFirstGradient) {
  const Factored f = factored(3, 3);
  const std::vector<ParameterInfo> one{weight_of(at::ones({3, 3}, at::kDouble))};
  const auto soap = make_test_optimizer("soap", {"skip_first=true"}, one);
  step(*soap, one[0], f.matrix({3, 2, 1}), 0.1);
  EXPECT_TRUE(at::equal(one[0].tensor.detach(), at::ones({3, 3}, at::kDouble)));
  EXPECT_EQ(soap->last_step()[0].update_norm, 0);
  EXPECT_TRUE(soap->preconditioner({})[0].isnan().all().item<bool>());
  EXPECT_FALSE(state_of(*soap).at("second_moment/fc.weight").any().item<bool>());
  // The second is then Adam's first: signs of singular values, eps = 1e-8 of them apart.
  step(*soap, one[0], f.matrix({3, -2, 1}), 0.1);
  EXPECT_TRUE(at::allclose(one[0].tensor.detach(), 0.999 - 0.1 * f.matrix({1, -1, 1}), 0, 1e-7));
}

TEST(Soap, HasBasesOfVectorsWhereItIsTold) {
  const std::vector<ParameterInfo> one{make_parameter("fc.bias", ParameterKind::bias, {1, 2, 3})};
  const auto plain = make_test_optimizer("soap", {}, one),
             with = make_test_optimizer("soap", {"precondition_vectors=true"}, one);
  EXPECT_EQ(state_of(*plain).at("basis0/fc.bias").numel(), 0);
  EXPECT_EQ(state_of(*with).at("basis0/fc.bias").numel(), 9);
}

TEST(Soap, OfGradientsThatAreNotFiniteIsNoError) {
  const std::vector<ParameterInfo> one{weight_of(at::zeros({2, 2}, at::kDouble))};
  const auto soap = make_test_optimizer("soap", {"precondition_frequency=1"}, one);
  for (int t = 0; t < 3; ++t) EXPECT_NO_THROW(step(*soap, one[0], at::full({2, 2}, NAN, at::kDouble), 1));
  EXPECT_TRUE(one[0].tensor.isnan().all().item<bool>());
}

TEST(Soap, RefusesBadOptionsInOneLine) {
  for (const std::string bad : {"eps=-1", "beta2=1.0", "precondition_frequency=0", "max_dimension=0"}) {
    const std::string message = message_of([&] {
      make_test_optimizer("soap", {bad}, {weight_of(at::ones({2, 2}, at::kDouble))});
    });
    EXPECT_NE(message.find(bad.substr(0, bad.find('='))), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace basin
