// Multi-batch L-BFGS against the dense inverse-Hessian update, with and without noise.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Symmetric with eigenvalues 0.5 to 4.
MatrixXd curvature() {
  MatrixXd a(4, 4);
  a << 2, 0.5, 0, 0.3, 0.5, 1, 0.2, 0, 0, 0.2, 3, -0.4, 0.3, 0, -0.4, 1.5;
  return a;
}

std::vector<double> values(const VectorXd& v) { return {v.data(), v.data() + v.size()}; }
VectorXd vector_of(const at::Tensor& tensor) {
  const std::vector<double> v = values_of(tensor);
  return Eigen::Map<const VectorXd>(v.data(), static_cast<Eigen::Index>(v.size()));
}

/// H from the newest `history` pairs: H0 = s'y/y'y of the newest, then (I - rho s y') H (I - rho y s') + rho s s', oldest
/// first (Nocedal & Wright 2006, equation 7.16).
VectorXd dense_direction(const std::vector<VectorXd>& s, const std::vector<VectorXd>& y, size_t history,
                         const VectorXd& g) {
  if (s.empty()) return g / std::max(1.0, g.norm());
  const MatrixXd identity = MatrixXd::Identity(g.size(), g.size());
  MatrixXd h = identity * (s.back().dot(y.back()) / y.back().squaredNorm());
  for (size_t k = s.size() > history ? s.size() - history : 0; k < s.size(); ++k) {
    const double rho = 1 / y[k].dot(s[k]);
    h = (identity - rho * s[k] * y[k].transpose()) * h * (identity - rho * y[k] * s[k].transpose()) +
        rho * s[k] * s[k].transpose();
  }
  return h * g;
}

class LbfgsHistory : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pairs, LbfgsHistory, ::testing::Values(1, 3, 10));

// The noise of each batch is its own, that of an overlap the same before and after a step: y is A s without noise.
TEST_P(LbfgsHistory, LearnsFromOverlapsWhatItsDenseFormLearnsWithoutNoise) {
  const MatrixXd a = curvature();
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {3, -2, 1, 4})};
  const auto lbfgs = make_test_optimizer("lbfgs", {"history=" + std::to_string(GetParam())}, one);
  VectorXd w = vector_of(one[0].tensor), noise_of_overlap = VectorXd::Zero(4);
  std::vector<VectorXd> s, y;
  std::srand(1);
  for (int t = 0; t < 20; ++t) {
    const double rate = 1.0 / (1 + t);
    const VectorXd g = a * w + VectorXd::Random(4), next = VectorXd::Random(4);
    const auto tensors = [&](const VectorXd& v) {
      return std::vector<at::Tensor>{at::tensor(values(v), at::kDouble)};
    };
    lbfgs->set_overlap(t == 0 ? std::vector<at::Tensor>() : tensors(a * w + noise_of_overlap),
                       tensors(a * w + next));
    noise_of_overlap = next;
    set_gradient(one[0], values(g));
    lbfgs->set_learning_rate(rate);
    lbfgs->step();

    const VectorXd step = -rate * dense_direction(s, y, static_cast<size_t>(GetParam()), g);
    w += step;
    s.push_back(step);
    y.push_back(a * step);
    // Twenty products with a matrix of condition number below ten, in float64.
    EXPECT_NEAR((vector_of(one[0].tensor) - w).norm(), 0, 1e-10) << "step " << t;
    EXPECT_NEAR(lbfgs->last_step()[0].update_norm, step.norm(), 1e-10);
  }
}

TEST(Lbfgs, LeavesOutPairsWithoutCurvature) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {1, 1})};
  const auto lbfgs = make_test_optimizer("lbfgs", {}, one);
  lbfgs->set_learning_rate(0.5);
  for (int t = 0; t < 4; ++t) {  // up a concave function: y = -s
    set_gradient(one[0], {-values_of(one[0].tensor)[0], -values_of(one[0].tensor)[1]});
    lbfgs->step();
  }
  // Each step is that of no pairs: half of g / max(1, |g|), |g| = sqrt(2) at first, so along (1, 1)/sqrt(2).
  EXPECT_NEAR(values_of(one[0].tensor)[0], 1 + 4 * 0.5 / std::sqrt(2.0), 1e-14);
  for (const auto& [name, tensor] : lbfgs->state()) {
    if (name == "pairs") {
      EXPECT_EQ(tensor.item<int64_t>(), 0);
    }
  }
}

// Weight decay is part of the function: with it, half of the curvature of w^2/2 is the decay's.
TEST(Lbfgs, SeesTheCurvatureOfTheDecay) {
  const std::vector<ParameterInfo> one{make_parameter("fc.weight", ParameterKind::weight, {2})};
  const auto lbfgs = make_test_optimizer("lbfgs", {"weight_decay=1"}, one);
  lbfgs->set_learning_rate(1);
  for (int t = 0; t < 2; ++t) {
    set_gradient(one[0], values_of(one[0].tensor));
    lbfgs->step();
  }
  // g + w = 4: a step of length 1 to w = 1; then the Newton step of w^2 to its minimum.
  EXPECT_NEAR(values_of(one[0].tensor)[0], 0, 1e-14);
}

}  // namespace
}  // namespace basin
