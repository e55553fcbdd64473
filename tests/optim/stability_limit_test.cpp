// Methods whose P learns: from P as it stands, a quadratic shrinks below the limit that they state and grows above it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/math/kronecker.h"
#include "core/seed.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using testing::make_test_optimizer;

constexpr int64_t kRows = 3, kColumns = 2;

at::Tensor symmetric_positive() {
  at::Generator generator = make_generator(3);
  const at::Tensor x = at::empty({kRows * kColumns, 20}, at::kDouble).normal_(0, 1, generator);
  return at::mm(x, x.t()) / 20;
}

/// A method whose P no gradient below 1e-3 changes any more: after 4,000 random ones of length 1 and 600 of nothing, which empty its moments.
class Settled {
 public:
  Settled(const std::string& name, const std::vector<std::string>& settings)
      : weight_(at::zeros({kRows, kColumns}, at::kDouble).requires_grad_(true)),
        optimizer_(
            make_test_optimizer(name, settings, {{"fc.weight", "fc", ParameterKind::weight, weight_}})) {
    at::Generator generator = make_generator(4);
    optimizer_->set_learning_rate(1e-9);
    for (int t = 0; t < 4000; ++t) step(at::empty({kRows, kColumns}, at::kDouble).normal_(0, 1, generator));
    for (int t = 0; t < 600; ++t) step(at::zeros({kRows, kColumns}, at::kDouble));
  }

  /// The largest eigenvalue of P^{-1} A by power iteration.
  double curvature(const at::Tensor& a) const {
    const at::Tensor p = optimizer_->preconditioner({at::zeros({kRows, kColumns}, at::kDouble)})[0];
    const auto bases = optimizer_->preconditioner_bases();
    at::Tensor v = at::ones({kRows * kColumns}, at::kDouble);
    double length = NAN;
    for (int t = 0; t < 5000; ++t) {
      at::Tensor g = at::mv(a, v).view({kRows, kColumns});
      if (!bases.empty()) g = kronecker_transposed_product(bases[0], g);
      g = g / p;
      if (!bases.empty()) g = kronecker_product(bases[0], g);
      length = g.norm().item<double>();
      v = g.flatten() / length;
    }
    return length;
  }

  /// How much longer w is after 150 steps on w'Aw/2 from |w| = 1e-5.
  double growth(const at::Tensor& a, double rate) {
    const at::NoGradGuard no_grad;
    weight_.fill_(1e-5 / std::sqrt(kRows * kColumns));
    optimizer_->set_learning_rate(rate);
    for (int t = 0; t < 150 && weight_.norm().item<double>() < 1e-3; ++t)
      step(at::mv(a, weight_.flatten()).view({kRows, kColumns}));
    return weight_.norm().item<double>() / 1e-5;
  }

  double limit() const { return optimizer_->stability_limit(); }

 private:
  void step(const at::Tensor& gradient) {
    weight_.mutable_grad() = gradient;
    optimizer_->step();
  }

  at::Tensor weight_;
  std::unique_ptr<Optimizer> optimizer_;
};

// P loses a hundredth by these 150 steps without gradients of length 1, so the limit is looked for within five.
TEST(StabilityLimit, IsThatOfPAsItStandsWhereThatLearns) {
  const at::Tensor a = symmetric_positive();
  for (const auto& [name, settings] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"adamw", {"beta2=0.99999", "weight_decay=0"}},
           {"soap", {"beta2=0.99999", "weight_decay=0", "precondition_frequency=100000"}},
           {"shampoo", {"momentum=0.9"}}}) {
    SCOPED_TRACE(name);
    for (const auto& [share, grows] : {std::pair{0.95, false}, {1.05, true}}) {
      Settled method(name, settings);
      const double growth = method.growth(a, share * method.limit() / method.curvature(a));
      if (grows) {
        EXPECT_GT(growth, 10);
      } else {
        EXPECT_LT(growth, 0.5);
      }
    }
  }
}

}  // namespace
}  // namespace basin
