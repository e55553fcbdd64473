#include "hessian/top_eigenpairs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <stdexcept>

#include "core/error.h"
#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "hessian/lanczos.h"
#include "hessian/linear_operator.h"
#include "hessian/objective.h"
#include "tests/support/matrices.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::diagonal_operator;

at::Tensor spectrum(const std::vector<double>& outliers, double low, double high, int64_t count) {
  return at::cat({at::tensor(outliers, at::kDouble), at::linspace(low, high, count, at::kDouble)});
}

std::vector<double> values(const std::vector<Eigenpair>& pairs) {
  std::vector<double> v;
  for (const Eigenpair& pair : pairs) v.push_back(pair.value);
  return v;
}

/// Every pair against its operator, without the residual that it states.
void expect_true_residuals(FunctionOperator& op, const TopEigenResult& result) {
  for (const auto* end : {&result.largest, &result.smallest}) {
    for (const Eigenpair& pair : *end) {
      const at::Tensor v = pair.vector.to(at::kDouble);
      const double residual = (op.apply(pair.vector).to(at::kDouble) - pair.value * v).norm().item<double>();
      EXPECT_NEAR(v.norm().item<double>(), 1, 1e-6);
      EXPECT_NEAR(residual, pair.residual, 1e-12 + 1e-6 * std::abs(pair.value));
    }
  }
}

/// Every test for every solver.
class TopEigenpairs : public ::testing::TestWithParam<std::string> {
 public:
  static TopEigenResult solve(LinearOperator& op, TopEigenOptions options) {
    options.solver = GetParam();
    return top_eigenpairs(op, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Solvers, TopEigenpairs, ::testing::Values("lanczos", "spectra"),
                         [](const auto& info) { return info.param; });

TEST_P(TopEigenpairs, FindsAlgebraicallyLargestWhereMagnitudesNearlyTie) {
  // PyHessian reports 7.5, 7.4 or 4.2 for the first of these (reference: curvature tools, case 1).
  auto op = diagonal_operator(spectrum({10, -9.9, 9.5, 9.4}, -3, 5, 500));
  for (const uint64_t seed : {0, 1, 2}) {
    const TopEigenResult result = solve(op, {.count = 4, .smallest = 1, .tolerance = 1e-6, .seed = seed});
    EXPECT_EQ(result.status, SolverStatus::converged);
    // Value errors are residual^2 / gap, here below (1e-5)^2 / 0.1.
    EXPECT_THAT(values(result.largest),
                ::testing::Pointwise(::testing::DoubleNear(1e-8), {10.0, 9.5, 9.4, 5.0}));
    EXPECT_NEAR(result.smallest[0].value, -9.9, 1e-8);
    expect_true_residuals(op, result);
  }
}

TEST_P(TopEigenpairs, FindsNoCopiesOfOneEigenvalue) {
  // eigenthings returns five copies of 10 (case 2); the fourth and fifth of these are 0.01 apart.
  auto op = diagonal_operator(spectrum({10, 9.5}, 0, 5, 500));
  const TopEigenResult result =
      solve(op, {.count = 5, .smallest = 0, .tolerance = 1e-6, .max_restarts = 200});
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_THAT(values(result.largest), ::testing::Pointwise(::testing::DoubleNear(1e-7),
                                                           {10.0, 9.5, 5.0, 5 - 5.0 / 499, 5 - 10.0 / 499}));
}

TEST_P(TopEigenpairs, ClusteredSpectrumTakesFewProducts) {
  // reference: curvature tools, 3.5; tuned ARPACK takes 21 products for these five, power iteration above
  // 200.
  at::Generator generator = make_generator(0);
  const at::Tensor bulk = at::rand({20000}, generator, at::kDouble) * 1.3 - 0.3;
  const at::Tensor top = 10 * at::pow(0.93, at::arange(10, at::kDouble));
  auto op = diagonal_operator(at::cat({top, bulk}));
  const TopEigenResult five = solve(op, {.count = 5, .smallest = 0, .tolerance = 1e-3});
  EXPECT_EQ(five.status, SolverStatus::converged);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(five.largest[i].value, 10 * std::pow(0.93, i), five.largest[i].residual + 1e-12);
  }
  EXPECT_LE(five.products, GetParam() == "lanczos" ? 20 : 21 + 5);  // Spectra: five for the true residuals
  // The smallest is the edge of a dense bulk here, the slowest case for any Krylov method.
  const TopEigenResult one = solve(op, {.count = 1, .smallest = 1, .tolerance = 1e-2});
  EXPECT_LE(one.products, 40);
  EXPECT_NEAR(one.smallest[0].value, -0.3, one.smallest[0].residual + 0.01);
}

TEST_P(TopEigenpairs, CountsTheProductsItTakes) {
  int64_t calls = 0;
  const at::Tensor d = spectrum({20, 10}, -1, 1, 300);
  FunctionOperator op(d.numel(), at::kDouble, [&](const at::Tensor& x) { return ++calls, d * x; });
  const TopEigenResult result = solve(op, {.count = 2});
  EXPECT_EQ(result.products, calls);
}

TEST_P(TopEigenpairs, ShowsMultiplicitiesWhereTheKrylovSpaceBreaksDown) {
  auto op = diagonal_operator(at::cat({at::full({3}, 7.0, at::kDouble), at::full({200}, 2.0, at::kDouble),
                                       at::full({2}, -1.0, at::kDouble)}));
  const TopEigenResult result = solve(op, {.count = 4, .smallest = 3, .tolerance = 1e-8});
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_THAT(values(result.largest),
              ::testing::Pointwise(::testing::DoubleNear(1e-10), {7.0, 7.0, 7.0, 2.0}));
  EXPECT_THAT(values(result.smallest), ::testing::Pointwise(::testing::DoubleNear(1e-10), {-1.0, -1.0, 2.0}));
}

TEST_P(TopEigenpairs, SeesTheNullSpaceOfALowRankMatrix) {
  // A start vector forced into the range, as Spectra does it, would report 3 as the smallest eigenvalue.
  const at::Tensor d = at::zeros({400}, at::kDouble);
  d[17] = 5;
  d[200] = 3;
  auto op = diagonal_operator(d);
  const TopEigenResult result = solve(op, {.count = 3, .smallest = 1, .tolerance = 1e-6});
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_THAT(values(result.largest), ::testing::Pointwise(::testing::DoubleNear(1e-10), {5.0, 3.0, 0.0}));
  EXPECT_NEAR(result.smallest[0].value, 0, 1e-10);
}

TEST_P(TopEigenpairs, ZeroMatrixHasZeroEigenvalues) {
  auto op = diagonal_operator(at::zeros({100}, at::kDouble));
  const TopEigenResult result = solve(op, {.count = 2, .smallest = 1});
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_THAT(values(result.largest), ::testing::ElementsAre(0.0, 0.0));
  EXPECT_EQ(result.smallest[0].value, 0);
}

TEST_P(TopEigenpairs, ScaleOfTheMatrixDoesNotMatter) {
  const at::Tensor d = spectrum({10, 9}, -2, 5, 300);
  for (const double scale : {1e-30, 1e-12, 1.0, 1e12}) {
    auto op = diagonal_operator(d * scale);
    const TopEigenResult result = solve(op, {.count = 2, .smallest = 1, .tolerance = 1e-6});
    EXPECT_EQ(result.status, SolverStatus::converged) << scale;
    EXPECT_NEAR(result.largest[0].value / scale, 10, 1e-8);
    EXPECT_NEAR(result.largest[1].value / scale, 9, 1e-8);
    EXPECT_NEAR(result.smallest[0].value / scale, -2, 1e-6);
  }
}

TEST_P(TopEigenpairs, SmallMatrices) {
  auto one = diagonal_operator(at::full({1}, -4.0, at::kDouble));
  const TopEigenResult single = solve(one, {.count = 3, .smallest = 2});
  EXPECT_THAT(values(single.largest), ::testing::ElementsAre(-4.0));
  EXPECT_THAT(values(single.smallest), ::testing::ElementsAre(-4.0));
  auto three = diagonal_operator(at::tensor({2.0, -1.0, 2.0}, at::kDouble));
  const TopEigenResult all = solve(three, {.count = 5, .smallest = 1});
  EXPECT_THAT(values(all.largest), ::testing::Pointwise(::testing::DoubleNear(1e-12), {2.0, 2.0, -1.0}));
  auto between = diagonal_operator(
      at::arange(40, at::kDouble));  // more unknowns than the dense path takes, fewer than a full basis
  const TopEigenResult krylov = solve(between, {.count = 3, .smallest = 2, .tolerance = 1e-9});
  EXPECT_EQ(krylov.method, GetParam() == "lanczos" ? "lanczos" : "spectra-lanczos");
  EXPECT_THAT(values(krylov.largest), ::testing::Pointwise(::testing::DoubleNear(1e-9), {39.0, 38.0, 37.0}));
  EXPECT_THAT(values(krylov.smallest), ::testing::Pointwise(::testing::DoubleNear(1e-9), {0.0, 1.0}));
}

TEST_P(TopEigenpairs, RestartsWhereTheBasisIsFull) {
  auto op = diagonal_operator(spectrum({}, 0, 1, 1000));
  const TopEigenResult result =
      solve(op, {.count = 2, .smallest = 1, .tolerance = 1e-5, .max_krylov = 30, .max_restarts = 200});
  EXPECT_EQ(result.method, GetParam() == "lanczos" ? "lanczos" : "spectra-restarted");
  EXPECT_GT(result.restarts, 0);
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_NEAR(result.largest[0].value, 1, 1e-5);
  EXPECT_NEAR(result.largest[1].value, 1 - 1.0 / 999, 1e-5);
}

TEST_P(TopEigenpairs, SaysWhenItHasNotConverged) {
  auto op = diagonal_operator(spectrum({}, 0, 1, 2000));
  const TopEigenResult result =
      solve(op, {.count = 3, .smallest = 1, .tolerance = 1e-8, .max_krylov = 12, .max_restarts = 1});
  EXPECT_EQ(result.status, SolverStatus::not_converged);
  ASSERT_EQ(result.largest.size(), 3u);
  for (const Eigenpair& pair : result.largest)
    EXPECT_GT(pair.residual, 1e-8);  // and yet a value with its residual
  expect_true_residuals(op, result);
}

TEST_P(TopEigenpairs, Float32OperatorReachesItsOwnPrecision) {
  const at::Tensor d = spectrum({30, 12}, -1, 2, 2000).to(at::kFloat);
  auto op = diagonal_operator(d);
  const TopEigenResult result = solve(op, {.count = 2, .smallest = 1, .tolerance = 1e-4});
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_NEAR(result.largest[0].value, 30, 1e-5 * 30);
  EXPECT_NEAR(result.largest[1].value, 12, 1e-5 * 12);
  EXPECT_EQ(result.largest[0].vector.scalar_type(), at::kFloat);
}

TEST_P(TopEigenpairs, NanAndInfinityAreAStatus) {
  for (const double poison :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const int64_t n : {8, 200}) {
      for (const int64_t after : {0, 3}) {
        int64_t calls = 0;
        FunctionOperator op(n, at::kDouble, [&](const at::Tensor& x) {
          return calls++ < after ? x * at::arange(n, at::kDouble) : at::full({n}, poison, at::kDouble);
        });
        const TopEigenResult result = solve(op, {.count = 2});
        EXPECT_EQ(result.status, SolverStatus::nonfinite) << n << " " << after;
        EXPECT_TRUE(result.largest.empty());
      }
    }
  }
}

TEST_P(TopEigenpairs, ExceptionsOfTheOperatorComeThrough) {
  int64_t calls = 0;
  FunctionOperator op(200, at::kDouble, [&](const at::Tensor& x) -> at::Tensor {
    if (++calls == 5) throw std::runtime_error("out of memory");
    return x * at::arange(200, at::kDouble);
  });
  EXPECT_THROW(solve(op, {.count = 2}), std::runtime_error);
  EXPECT_EQ(calls, 5);
}

TEST_P(TopEigenpairs, SameSeedSameBits) {
  auto op = diagonal_operator(spectrum({10, 9.5}, 0, 5, 500));
  const TopEigenResult a = solve(op, {.count = 2, .seed = 7}), b = solve(op, {.count = 2, .seed = 7});
  EXPECT_EQ(values(a.largest), values(b.largest));
  EXPECT_TRUE(at::equal(a.largest[0].vector, b.largest[0].vector));
  EXPECT_FALSE(at::equal(solve(op, {.count = 2, .seed = 8}).largest[0].vector, a.largest[0].vector));
}

TEST_P(TopEigenpairs, AgreesWithTheDenseHessianOfANetwork) {
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(testing::tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels, 8, 1 << 30);
  CurvatureOperator hessian(objective, Curvature::hessian);
  const at::Tensor exact = at::linalg_eigvalsh(testing::dense_matrix(hessian));
  const TopEigenResult result = solve(hessian, {.count = 5, .smallest = 2, .tolerance = 1e-7});
  EXPECT_EQ(result.status, SolverStatus::converged);
  // LAPACK on the assembled matrix; errors of values are residual^2 / gap.
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR(result.largest[i].value, exact[142 - i].item<double>(), 1e-9);
  for (int64_t i = 0; i < 2; ++i) EXPECT_NEAR(result.smallest[i].value, exact[i].item<double>(), 1e-9);
}

TEST(Lanczos, StopsEarlierWhereTheEigenvalueAloneMatters) {
  // That of the ResNet-20 in the reference on curvature tools: outliers apart.
  const std::vector<double> top{2480.9, 1167.4, 608.2, 473.3, 242.3, 128.6};
  auto op = diagonal_operator(spectrum(top, -100, 60, 2000));
  for (const uint64_t seed : {0, 1, 2}) {
    TopEigenOptions options{.count = 5, .smallest = 0, .tolerance = 1e-3, .seed = seed};
    const TopEigenResult by_residual = top_eigenpairs(op, options);
    options.stop_by_value = true;
    const TopEigenResult by_value = top_eigenpairs(op, options);
    EXPECT_EQ(by_value.status, SolverStatus::converged);
    EXPECT_LT(by_value.products, by_residual.products);
    for (int64_t i = 0; i < 5; ++i) {
      for (const TopEigenResult* found : {&by_residual, &by_value}) {
        const Eigenpair& pair = found->largest[i];
        EXPECT_LE(pair.value_bound, pair.residual);
        EXPECT_LE(std::abs(pair.value - top[i]), pair.value_bound);
      }
      EXPECT_LE(by_value.largest[i].value_bound, 1e-3 * by_value.largest[i].value);
    }
  }
}

// With one Ritz value there is no gap, and with one pair wanted nothing else holds the search back.
TEST(Lanczos, ByValueOnePairWaitsForWhatComesNext) {
  auto op = diagonal_operator(spectrum({10, 6}, 0, 3, 500));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const TopEigenResult found = top_eigenpairs(op, {.count = 1,
                                                     .smallest = 0,
                                                     .tolerance = 1e-3,
                                                     .stop_by_value = true,
                                                     .seed = seed,
                                                     .solver = "lanczos"});
    EXPECT_EQ(found.status, SolverStatus::converged);
    EXPECT_NEAR(found.largest[0].value, 10, 1e-2);
    EXPECT_GT(found.products, 3);
  }
}

TEST(Lanczos, MeetsItsBudgetByThickRestarts) {
  // A basis of 24 where 130 would be used: every product counts, and the values are those of the full basis.
  auto op = diagonal_operator(spectrum({10, 9.5}, 0, 5, 500));
  const TopEigenOptions options{
      .count = 5, .smallest = 1, .tolerance = 1e-6, .max_restarts = 200, .solver = "lanczos"};
  TopEigenOptions small = options;
  small.max_krylov = 24;
  const TopEigenResult full = top_eigenpairs(op, options), restarted = top_eigenpairs(op, small);
  EXPECT_GT(restarted.restarts, 0);
  EXPECT_LE(restarted.krylov, 24);
  EXPECT_EQ(restarted.status, SolverStatus::converged);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(restarted.largest[i].value, full.largest[i].value, 1e-9);
}

TEST(Lanczos, FindsAMissedCopyFromASecondStart) {
  // 10 twice and 8 once above a bulk: the first space has one vector of the pair, and no breakdown in sight.
  auto op = diagonal_operator(spectrum({10, 10, 8}, -1, 1, 500));
  TopEigenOptions options{.count = 2, .smallest = 0, .tolerance = 1e-4, .solver = "lanczos"};
  const TopEigenResult once = top_eigenpairs(op, options);
  options.search_copies = true;
  const TopEigenResult twice = top_eigenpairs(op, options);
  EXPECT_NEAR(once.largest[1].value, 8, 1e-3);
  EXPECT_THAT(values(twice.largest), ::testing::Pointwise(::testing::DoubleNear(1e-6), {10.0, 10.0}));
  EXPECT_EQ(twice.status, SolverStatus::converged);
  EXPECT_LE(twice.products, 2 * once.products + 10);
  EXPECT_LT(twice.asymmetry, 1e-12);
  expect_true_residuals(op, twice);
}

TEST(Lanczos, LeavesItsSpaceToOthers) {
  auto op = diagonal_operator(spectrum({10, 9.5}, 0, 5, 500));
  KrylovSpace space;
  const TopEigenOptions options{.count = 2, .smallest = 1, .tolerance = 1e-6};
  const TopEigenResult result = lanczos_eigenpairs(op, options, &space);
  const int64_t m = result.krylov;
  EXPECT_TRUE(space.whole);
  ASSERT_EQ(space.vectors.sizes(), at::IntArrayRef({m, 502}));
  const at::Tensor v = space.vectors;
  EXPECT_TRUE(at::allclose(v.matmul(v.t()), at::eye(m, at::kDouble), 0, 1e-12));
  EXPECT_TRUE(at::equal(space.products, v * spectrum({10, 9.5}, 0, 5, 500)));
  // The product V A V^T by hand, against the recurrence's matrix.
  const at::Tensor t = v.matmul(space.products.t());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < m; ++j) EXPECT_NEAR(space.projected(i, j), t[i][j].item<double>(), 1e-11);
  TopEigenOptions small = options;
  small.max_krylov = 12;
  small.max_restarts = 200;
  lanczos_eigenpairs(op, small, &space);
  EXPECT_FALSE(space.whole);
}

TEST(Lanczos, GoesOnWithTheSameBitsWhereItWasLeft) {
  const testing::TemporaryFolder folder;
  const at::Tensor d = spectrum({10, 9.5}, 0, 5, 500);
  TopEigenOptions options{
      .count = 5, .smallest = 1, .tolerance = 1e-6, .max_krylov = 24, .max_restarts = 200};
  options.state_path = folder.path() + "/state.h5";
  options.state_key = "this one";
  options.state_seconds = 0;
  options.search_copies = true;
  auto whole = diagonal_operator(d);
  const TopEigenResult undisturbed = lanczos_eigenpairs(whole, options);
  EXPECT_FALSE(std::filesystem::exists(options.state_path));
  for (const int64_t stop : {2, 20, 40, 60}) {  // before, at and after restarts
    int64_t calls = 0;
    FunctionOperator failing(d.numel(), at::kDouble, [&](const at::Tensor& x) -> at::Tensor {
      if (++calls > stop) throw std::runtime_error("killed");
      return d * x;
    });
    EXPECT_THROW(lanczos_eigenpairs(failing, options), std::runtime_error);
    calls = -1000;
    const TopEigenResult resumed = lanczos_eigenpairs(failing, options);
    EXPECT_EQ(calls + 1000, undisturbed.products - stop) << stop;  // nothing is computed twice
    EXPECT_EQ(resumed.products, undisturbed.products);
    EXPECT_EQ(values(resumed.largest), values(undisturbed.largest));
    for (size_t i = 0; i < 5; ++i)
      EXPECT_TRUE(at::equal(resumed.largest[i].vector, undisturbed.largest[i].vector)) << stop;
  }
}

TEST(Lanczos, TakesNoStateOfAnotherRun) {
  const testing::TemporaryFolder folder;
  const at::Tensor d = spectrum({10, 9.5}, 0, 5, 500);
  TopEigenOptions options{.count = 2, .smallest = 0, .tolerance = 1e-6, .seed = 1};
  options.state_path = folder.path() + "/state.h5";
  options.state_seconds = 0;
  const auto leave_state = [&](const std::string& key) {
    options.state_key = key;
    int64_t calls = 0;
    FunctionOperator failing(d.numel(), at::kDouble, [&](const at::Tensor& x) -> at::Tensor {
      if (++calls > 5) throw std::runtime_error("killed");
      return d * x;
    });
    EXPECT_THROW(lanczos_eigenpairs(failing, options), std::runtime_error);
  };
  const auto calls_of = [&](const std::string& key) {
    options.state_key = key;
    int64_t calls = 0;
    FunctionOperator op(d.numel(), at::kDouble, [&](const at::Tensor& x) { return ++calls, d * x; });
    const TopEigenResult result = lanczos_eigenpairs(op, options);
    EXPECT_EQ(result.status, SolverStatus::converged);
    return result.products - calls;
  };
  leave_state("one");
  EXPECT_EQ(calls_of("another"), 0);
  leave_state("one");
  std::filesystem::resize_file(options.state_path, 1000);  // truncated
  EXPECT_EQ(calls_of("one"), 0);
  leave_state("one");
  EXPECT_EQ(calls_of("one"), 5);
}

TEST(Lanczos, TrustsNoOperatorThatIsNotSymmetric) {
  at::Generator generator = make_generator(4);
  const at::Tensor a = at::randn({60, 60}, generator, at::kDouble);
  for (const double skew : {0.0, 0.1}) {
    const at::Tensor matrix = a + a.t() + skew * (a - a.t());
    FunctionOperator op(60, at::kDouble, [&](const at::Tensor& x) { return matrix.matmul(x); });
    for (const int64_t room : {0, 12}) {  // restarts keep the watch
      const TopEigenResult result =
          lanczos_eigenpairs(op, {.count = 2, .smallest = 1, .max_krylov = room, .max_restarts = 100});
      EXPECT_EQ(result.status, skew == 0 ? SolverStatus::converged : SolverStatus::not_converged)
          << skew << " " << room;
      EXPECT_EQ(result.asymmetry < 1e-12, skew == 0);
      for (const Eigenpair& pair : result.largest) {
        EXPECT_EQ(pair.converged, skew == 0);
        const double least = skew > 0 ? result.asymmetry * std::abs(pair.value) : 0;
        EXPECT_GE(pair.residual, least);
      }
    }
  }
}

TEST_P(TopEigenpairs, RefusesSenselessOptions) {
  auto op = diagonal_operator(at::ones({5}, at::kDouble));
  EXPECT_THROW(solve(op, {.count = 0, .smallest = 0}), ConfigError);
  EXPECT_THROW(solve(op, {.count = 1, .tolerance = 0}), ConfigError);
}

}  // namespace
}  // namespace basin
