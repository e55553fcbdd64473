// PyHessian's power iteration and trace against the same steps with a dense matrix, and what its stop rule
// hides.
#include "hessian/power_iteration.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "hessian/objective.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::diagonal_operator;

struct NetworkHessian {
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective{testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 8};
  CurvatureOperator op{objective, Curvature::hessian};
  at::Tensor dense = testing::dense_matrix(op);
};

double length(const at::Tensor& x) { return x.norm().item<double>(); }

TEST(PowerIteration, TakesTheStepsOfADenseMatrix) {
  NetworkHessian network;
  const int64_t n = network.op.size();
  at::Generator ours = make_generator(5), theirs = make_generator(5);
  const PowerResult found = power_eigenpairs(network.op, {.count = 2}, ours);
  ASSERT_EQ(found.pairs.size(), 2u);
  std::vector<at::Tensor> before;
  for (size_t pair = 0; pair < 2; ++pair) {
    at::Tensor v = at::randn({n}, theirs, at::kDouble);
    v = v / (length(v) + 1e-6);
    std::vector<double> quotients, residuals;
    while (quotients.size() < 100) {
      if (pair == 1) v = v - before[0] * before[0].dot(v);
      v = v / (length(v) + 1e-6);
      const at::Tensor av = network.dense.mv(v);
      quotients.push_back(av.dot(v).item<double>());
      residuals.push_back(length(av - quotients.back() * v) / length(v));
      v = av / (length(av) + 1e-6);
      const size_t k = quotients.size();
      if (k > 1 && std::abs(quotients[k - 2] - quotients[k - 1]) / (std::abs(quotients[k - 2]) + 1e-6) < 1e-3)
        break;
    }
    ASSERT_GT(quotients.size(), 3u) << "nothing was iterated";
    ASSERT_LT(quotients.size(), 100u) << "the stop rule was not asked";
    before.push_back(v);
    EXPECT_EQ(found.iterations[pair], static_cast<int64_t>(quotients.size()));
    // Rounding of float64 products in another order, over some ten steps.
    EXPECT_NEAR(found.pairs[pair].value, quotients[quotients.size() - 2], 1e-10);
    EXPECT_NEAR(found.pairs[pair].residual, residuals[residuals.size() - 2], 1e-8);
    EXPECT_LE(length(found.pairs[pair].vector - v), 1e-8);
    // What the residual says: an eigenvalue is that near.
    const at::Tensor eigenvalues = at::linalg_eigvalsh(network.dense);
    EXPECT_LE((eigenvalues - found.pairs[pair].value).abs().min().item<double>(), found.pairs[pair].residual);
  }
  EXPECT_EQ(found.products, found.iterations[0] + found.iterations[1]);
}

TEST(PowerIteration, ReturnsADominantNegativeEigenvalue) {
  const at::Tensor d = at::tensor({1.0, 3.0, -5.0, 0.5}, at::kDouble);
  FunctionOperator op = diagonal_operator(d);
  at::Generator generator = make_generator(1);
  const PowerResult found = power_eigenpairs(op, {.count = 3, .tolerance = 1e-10}, generator);
  // Twice over 1 + 1e-6 makes vectors shorter, and quotients smaller by 2e-6 of themselves; 1e-6 for what
  // that leaves of deflated vectors.
  const double shorter = 1 - 2e-6;
  EXPECT_NEAR(found.pairs[0].value, -5 * shorter, 1e-6);
  EXPECT_NEAR(found.pairs[1].value, 3 * shorter, 1e-6);
  EXPECT_NEAR(found.pairs[2].value, 1 * shorter, 1e-6);
}

// Eigenvalues 1, 0.99, 0.98, ...: the quotients creep, by less than 1e-3 per step.
TEST(PowerIteration, StopsFarFromTheTruthAndTheResidualSaysSo) {
  FunctionOperator op = diagonal_operator(1 - 0.01 * at::arange(80, at::kDouble));
  at::Generator generator = make_generator(1);
  const PowerResult found = power_eigenpairs(op, {}, generator);
  EXPECT_LT(found.iterations[0], 100);
  EXPECT_LT(found.pairs[0].value, 0.99);
  EXPECT_GT(found.pairs[0].relative_residual, 1e-2);
  EXPECT_FALSE(found.pairs[0].converged);
  EXPECT_EQ(found.status, SolverStatus::not_converged);
}

TEST(PowerIteration, EndsAtTheMostProductsAndAtWhatIsNotANumber) {
  FunctionOperator op = diagonal_operator(at::tensor({1.0, 0.999}, at::kDouble));
  at::Generator generator = make_generator(1);
  const PowerResult most = power_eigenpairs(op, {.iterations = 7, .tolerance = 0}, generator);
  EXPECT_EQ(most.products, 7);
  FunctionOperator broken = diagonal_operator(at::tensor({1.0, NAN}, at::kDouble));
  const PowerResult nothing = power_eigenpairs(broken, {.count = 2}, generator);
  EXPECT_EQ(nothing.status, SolverStatus::nonfinite);
  EXPECT_TRUE(nothing.pairs.empty());
  EXPECT_EQ(nothing.products, 1);
}

TEST(SteadyTrace, TakesTheSamplesOfADenseMatrix) {
  NetworkHessian network;
  at::Generator ours = make_generator(9), theirs = make_generator(9);
  const SampleMean found = steady_trace(network.op, 100, 1e-2, ours);
  std::vector<double> samples;
  double before = 0, mean = 0;
  while (samples.size() < 100) {
    const at::Tensor z = 2 * at::randint(0, 2, {network.op.size()}, theirs, at::kDouble) - 1;
    samples.push_back(z.dot(network.dense.mv(z)).item<double>());
    mean += (samples.back() - mean) / static_cast<double>(samples.size());
    if (std::abs(mean - before) / (std::abs(before) + 1e-6) < 1e-2) break;
    before = mean;
  }
  ASSERT_GT(samples.size(), 2u);
  ASSERT_LT(samples.size(), 100u);
  EXPECT_EQ(found.samples, static_cast<int64_t>(samples.size()));
  EXPECT_NEAR(found.value, mean, 1e-10 * std::abs(mean));
  EXPECT_EQ(steady_trace(network.op, 5, 0, ours).samples, 5);
}

}  // namespace
}  // namespace basin
