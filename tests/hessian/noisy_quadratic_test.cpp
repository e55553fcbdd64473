// The noisy quadratic model on coin flips against its closed form (models/noisy_quadratic.h).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "hessian/curvature_operator.h"
#include "hessian/objective.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

constexpr int64_t kDimensions = 256, kExamples = 1024;

/// The first dimensions of the coin flips; all of them where the Hessian isn't assembled.
Objective objective_of(const std::vector<std::string>& settings, int64_t d = kDimensions) {
  DataOptions options;
  options.set = "coin_flips";
  options.train_examples = kExamples;
  const Dataset data = load_dataset(options);
  const InputShape shape{.channels = kDimensions, .height = 1, .width = 1, .classes = d};
  return Objective(testing::make_test_model("noisy_quadratic", settings, shape), LossKind::mse,
                   network_inputs(data, data.train, at::arange(kExamples, at::kLong), at::kDouble, at::kCPU),
                   data.train.labels, /*micro_batch=*/300);
}

at::Tensor curvatures(double power, int64_t d = kDimensions) {
  return at::arange(1, d + 1, at::kDouble).pow(-power);
}

/// The parameters of a one-parameter model, set to those values.
void move_to(Objective& objective, const at::Tensor& phi) {
  const at::NoGradGuard no_grad;
  at::Tensor(objective.model().parameter_table()[0].tensor).copy_(phi.unsqueeze(0));
}

// float64 sums of a thousand terms of order 100.
constexpr double kQuadraticRounding = 1e-10;

TEST(NoisyQuadratic, StartsAtPlusOrMinusOneInEveryDirection) {
  const at::Tensor h = curvatures(1);
  for (const double p : {0.0, 0.5}) {
    Objective objective = objective_of({fmt::format("precondition={:.1f}", p)});
    const at::Tensor phi = objective.model().parameter_table()[0].tensor.detach().flatten();
    const at::Tensor theta = phi * h.pow(-p / 2);
    EXPECT_TRUE(
        at::allclose(theta.square(), at::ones({kDimensions}, at::kDouble), 1e-6, 0));  // drawn in float32
    // A sum of 256 signs has standard deviation 16.
    EXPECT_LT(std::abs(theta.sum().item<double>()), 64);
    EXPECT_NEAR(objective.loss(), (kDimensions + h.sum().item<double>()) / 2, 1e-5);
  }
}

TEST(NoisyQuadratic, LossAndGradientAreThoseOfTheQuadratic) {
  for (const auto& [power, p] : {std::pair{1.0, 0.0}, {1.0, 0.5}, {0.7, 1.0}}) {
    Objective objective =
        objective_of({fmt::format("power={:.1f}", power), fmt::format("precondition={:.1f}", p)});
    const at::Tensor h = curvatures(power), theta = at::sin(at::arange(kDimensions, at::kDouble));
    move_to(objective, theta * h.pow(p / 2));
    double loss = 0;
    const at::Tensor gradient = objective.gradient(&loss);
    EXPECT_NEAR(loss, (kDimensions + (h * theta.square()).sum().item<double>()) / 2,
                kQuadraticRounding * kDimensions);
    // By phi = P^1/2 theta: P^-1/2 H theta.
    EXPECT_TRUE(at::allclose(gradient, h.pow(1 - p / 2) * theta, kQuadraticRounding, kQuadraticRounding))
        << power << " " << p;
  }
}

TEST(NoisyQuadratic, HessianIsDiagonalWithThePowersOfTheIndex) {
  constexpr int64_t d = 12;
  for (const double p : {0.0, 0.5}) {
    Objective objective = objective_of({fmt::format("precondition={:.1f}", p)}, d);
    CurvatureOperator hessian(objective, Curvature::hessian);
    EXPECT_TRUE(at::allclose(testing::dense_matrix(hessian), at::diag(curvatures(1, d).pow(1 - p)),
                             kQuadraticRounding, kQuadraticRounding));
  }
}

// Zhang et al.'s C = H, wherever the parameters are.
TEST(NoisyQuadratic, CovarianceOfTheExamplesGradientsIsTheHessian) {
  constexpr int64_t d = 12;
  Objective objective = objective_of({}, d);
  move_to(objective, at::ones({d}, at::kDouble));
  CurvatureOperator covariance(objective, Curvature::gradient_covariance);
  const at::Tensor found = testing::dense_matrix(covariance), h = curvatures(1, d);
  EXPECT_TRUE(at::allclose(found.diag(), h, kQuadraticRounding, kQuadraticRounding));
  // Two fair coins' sample correlation has standard deviation 1/sqrt(N); 66 pairs stay below four of them.
  const at::Tensor correlation = found / (h.sqrt().unsqueeze(1) * h.sqrt().unsqueeze(0));
  EXPECT_LT((correlation - at::eye(d, at::kDouble)).abs().max().item<double>(),
            4 / std::sqrt(static_cast<double>(kExamples)));
}

}  // namespace
}  // namespace basin
