#include "hessian/objective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "tests/support/analytic_models.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::LinearModel;
using testing::sine_numbers;
using testing::tiny_batch;

double relative(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

at::Tensor numbers(int64_t n, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  return at::randn({n}, generator, at::kDouble);
}

struct Mlp {
  std::shared_ptr<Model> model = testing::tiny_mlp();
  testing::TinyBatch batch = tiny_batch(testing::tiny_shape(), 23);
  Objective objective(int64_t micro_batch = 23, int64_t graph_memory = 0,
                      LossKind loss = LossKind::cross_entropy) {
    return Objective(model, loss, batch.images, batch.labels, micro_batch, graph_memory);
  }
};

at::Tensor hvp(Objective& objective, const at::Tensor& v) {
  return CurvatureOperator(objective, Curvature::hessian).apply(v);
}

at::Tensor dense(Objective& objective) {
  CurvatureOperator hessian(objective, Curvature::hessian);
  return testing::dense_matrix(hessian);
}

struct Linear {
  int64_t n = 13, features = 4, classes = 3;
  at::Tensor x = sine_numbers({n, features}), labels = at::arange(n).remainder(classes);
  at::Tensor weight = sine_numbers({classes, features}, 100);
  std::shared_ptr<Model> model = std::make_shared<LinearModel>(weight.clone());
};

TEST(Objective, MatchesClosedFormOfSoftmaxRegression) {
  const Linear l;
  Objective objective(l.model, LossKind::cross_entropy, l.x, l.labels, 5);
  const at::Tensor p = at::softmax(l.x.matmul(l.weight.t()), 1);
  at::Tensor hessian = at::zeros({12, 12}, at::kDouble), gradient = at::zeros({3, 4}, at::kDouble);
  double loss = 0;
  for (int64_t i = 0; i < l.n; ++i) {
    const int64_t label = l.labels[i].item<int64_t>();
    loss -= std::log(p[i][label].item<double>()) / l.n;
    const at::Tensor residual = p[i] - at::one_hot(l.labels[i], 3);
    gradient += at::outer(residual, l.x[i]) / l.n;
    hessian += at::kron(at::diag(p[i]) - at::outer(p[i], p[i]), at::outer(l.x[i], l.x[i])) / l.n;
  }
  double measured = 0;
  const at::Tensor g = objective.gradient(&measured);
  // Two float64 evaluations of the same sums: rounding alone.
  EXPECT_NEAR(measured, loss, 1e-13);
  EXPECT_NEAR(objective.loss(), loss, 1e-13);
  EXPECT_LT(relative(g, gradient.flatten()), 1e-12);
  EXPECT_LT(relative(dense(objective), hessian), 1e-12);
}

TEST(Objective, MatchesClosedFormOfLeastSquares) {
  const Linear l;
  Objective objective(l.model, LossKind::mse, l.x, l.labels, 4);
  const at::Tensor expected = at::kron(at::eye(3, at::kDouble), l.x.t().matmul(l.x) / l.n);
  EXPECT_LT(relative(dense(objective), expected), 1e-12);
}

TEST(Objective, HessianMatchesFiniteDifferencesOfTheGradient) {
  Mlp mlp;
  Objective objective = mlp.objective();
  const at::Tensor w = objective.parameters().gather();
  const at::Tensor hessian = dense(objective);
  std::vector<at::Tensor> columns;
  for (const at::Tensor& unit : at::eye(w.numel(), at::kDouble).unbind()) {
    objective.parameters().scatter(w + 1e-5 * unit);
    const at::Tensor up = objective.gradient();
    objective.parameters().scatter(w - 1e-5 * unit);
    columns.push_back((up - objective.gradient()) / 2e-5);
  }
  // Central differences of a tanh net at h = 1e-5: h^2 times a third derivative, plus 1e-16 / h of rounding.
  EXPECT_LT(relative(hessian, at::stack(columns, 1)), 1e-8);
  EXPECT_LT(relative(hessian, hessian.t()), 1e-13);
}

TEST(Objective, GradientMatchesFiniteDifferencesOfTheLoss) {
  Mlp mlp;
  Objective objective = mlp.objective(7);
  const at::Tensor w = objective.parameters().gather(), g = objective.gradient();
  const at::Tensor v = numbers(w.numel(), 5);
  objective.parameters().scatter(w + 1e-5 * v);
  const double up = objective.loss();
  objective.parameters().scatter(w - 1e-5 * v);
  const double difference = (up - objective.loss()) / 2e-5;
  EXPECT_NEAR(g.dot(v).item<double>(), difference, 1e-8);  // h^2 and rounding, as above
}

TEST(Objective, ProductIsLinear) {
  Mlp mlp;
  Objective objective = mlp.objective();
  const at::Tensor a = numbers(143, 1), b = numbers(143, 2);
  EXPECT_LT(relative(hvp(objective, 2.0 * a - 3.0 * b), 2.0 * hvp(objective, a) - 3.0 * hvp(objective, b)),
            1e-13);
}

TEST(Objective, MicroBatchesCountByTheirShare) {
  Mlp mlp;
  Objective whole = mlp.objective();
  const at::Tensor v = numbers(143, 3);
  const at::Tensor g = whole.gradient(), hv = hvp(whole, v);
  for (const int64_t micro_batch : {1, 5, 8, 20, 22, 1000}) {  // of 23: every unequal last one
    Objective split = mlp.objective(micro_batch);
    // Only the order of float64 sums differs. Means of batches taken unweighted are off by tens of percent
    // here.
    EXPECT_NEAR(split.loss(), whole.loss(), 1e-14);
    EXPECT_LT(relative(split.gradient(), g), 1e-13) << micro_batch;
    EXPECT_LT(relative(hvp(split, v), hv), 1e-13) << micro_batch;
  }
}

TEST(Objective, RetainedGraphsEqualRebuiltOnesAndFollowTheParameters) {
  Mlp mlp;
  Objective without = mlp.objective(8), with = mlp.objective(8, 1 << 30);
  CurvatureOperator rebuilt(without, Curvature::hessian), retained(with, Curvature::hessian);
  const at::Tensor v = numbers(143, 4), w = with.parameters().gather();
  EXPECT_TRUE(at::equal(retained.apply(v), rebuilt.apply(v)));
  EXPECT_TRUE(at::equal(retained.apply(v), rebuilt.apply(v)));  // the second time from the kept graph
  const at::Tensor before = retained.apply(v);
  with.parameters().scatter(w * 1.5);
  EXPECT_TRUE(at::equal(retained.apply(v), rebuilt.apply(v)));
  EXPECT_FALSE(at::equal(retained.apply(v), before));
  with.parameters().scatter(w);  // old values in rewritten tensors
  EXPECT_TRUE(at::equal(retained.apply(v), before));
  {
    at::NoGradGuard no_grad;
    mlp.model->parameter_table()[0].tensor.data().mul_(2);  // leaves no trace in the version counter
  }
  EXPECT_TRUE(at::equal(retained.apply(v), rebuilt.apply(v)));
}

TEST(Objective, GradientOverIsTheMeanOfItsExamples) {
  Mlp mlp;
  Objective objective = mlp.objective(4);
  const at::Tensor index = at::tensor({7, 2, 2, 19, 11, 0, 5}, at::kLong);
  at::Tensor sum = at::zeros({143}, at::kDouble);
  for (const at::Tensor& i : index.split(1)) {
    Objective one(mlp.model, LossKind::cross_entropy, mlp.batch.images.index_select(0, i),
                  mlp.batch.labels.index_select(0, i), 1);
    sum += one.gradient() / 7;
  }
  EXPECT_LT(relative(objective.gradient_over(index), sum), 1e-13);
}

TEST(Objective, UnusedParametersHaveZeroDerivatives) {
  const Linear l;
  Objective objective(std::make_shared<LinearModel>(l.weight.clone(), true), LossKind::cross_entropy, l.x,
                      l.labels, 5);
  ASSERT_EQ(objective.parameters().size(), 14);
  EXPECT_EQ(objective.gradient().slice(0, 12).abs().sum().item<double>(), 0);
  EXPECT_EQ(hvp(objective, at::ones({14}, at::kDouble)).slice(0, 12).abs().sum().item<double>(), 0);
  EXPECT_GT(hvp(objective, at::ones({14}, at::kDouble)).norm().item<double>(), 0);
}

TEST(Objective, TouchesNeitherGradFieldsNorRunningStatistics) {
  const auto model = testing::tiny_model("resnet20", {"norm=batch"});
  const auto batch = tiny_batch(testing::tiny_image_shape(), 6);
  std::vector<at::Tensor> buffers;
  for (const auto& [name, tensor] : model->buffer_table()) buffers.push_back(tensor.clone());
  Objective whole(model, LossKind::cross_entropy, batch.images, batch.labels, 6);
  Objective split(model, LossKind::cross_entropy, batch.images, batch.labels, 4);
  const at::Tensor v = at::ones({whole.parameters().size()}, at::kDouble);
  EXPECT_LT(relative(hvp(split, v), hvp(whole, v)),
            1e-11);  // batch statistics would differ between 4 + 2 and 6
  EXPECT_LT(relative(split.gradient(), whole.gradient()), 1e-12);
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(at::equal(buffers[i], model->buffer_table()[i].second));
  for (const ParameterInfo& p : model->parameter_table()) EXPECT_FALSE(p.tensor.grad().defined()) << p.name;
}

TEST(Objective, Float32AgreesWithFloat64) {
  const auto batch = tiny_batch(testing::tiny_image_shape(), 9);
  const auto wide = testing::tiny_model("small_cnn"),
             narrow = testing::tiny_model("small_cnn", {}, 1, at::kFloat);
  Objective exact(wide, LossKind::cross_entropy, batch.images, batch.labels, 9);
  Objective single(narrow, LossKind::cross_entropy, batch.images.to(at::kFloat), batch.labels, 4);
  const at::Tensor v = numbers(exact.parameters().size(), 6);
  EXPECT_EQ(single.dtype(), at::kFloat);
  // Some ten float32 roundings of 6e-8 in a row.
  EXPECT_LT(relative(hvp(single, v.to(at::kFloat)).to(at::kDouble), hvp(exact, v)), 5e-6);
  EXPECT_NEAR(single.loss(), exact.loss(), 1e-6);
  EXPECT_EQ(single.accuracy(), exact.accuracy());
}

TEST(Objective, AccuracyIsTheShareOfRightGuesses) {
  const at::Tensor x = at::eye(3, at::kDouble);
  Objective objective(std::make_shared<LinearModel>(at::eye(3, at::kDouble)), LossKind::mse, x,
                      at::tensor({0, 1, 1}, at::kLong), 2);
  EXPECT_DOUBLE_EQ(objective.accuracy(), 2.0 / 3);
}

TEST(Objective, RefusesEmptySetsAndMicroBatches) {
  const Linear l;
  EXPECT_THROW(Objective(l.model, LossKind::mse, l.x, l.labels, 0), ConfigError);
  EXPECT_THROW(Objective(l.model, LossKind::mse, l.x.slice(0, 0, 0), l.labels.slice(0, 0, 0), 5), DataError);
  EXPECT_THROW(Objective(l.model, LossKind::mse, l.x, l.labels.slice(0, 0, 5), 5), DataError);
}

TEST(ParameterVector, GathersInLogicalOrderWhateverTheMemoryFormat) {
  const at::Tensor plain = sine_numbers({4, 3, 2, 2});
  ParameterInfo p{"w", "l", ParameterKind::weight, plain.contiguous(at::MemoryFormat::ChannelsLast)};
  const ParameterVector vector({p});
  EXPECT_TRUE(at::equal(vector.gather(), plain.flatten()));
  vector.scatter(at::arange(48, at::kDouble));
  EXPECT_TRUE(at::equal(p.tensor, at::arange(48, at::kDouble).view({4, 3, 2, 2})));
}

TEST(ScopedParameters, RestoresBitForBit) {
  Mlp mlp;
  Objective objective = mlp.objective();
  const at::Tensor before = objective.parameters().gather();
  {
    const ScopedParameters restore(objective.parameters());
    objective.parameters().scatter(before * 3 + 1);
    EXPECT_FALSE(at::equal(objective.parameters().gather(), before));
  }
  EXPECT_TRUE(at::equal(objective.parameters().gather(), before));
}

}  // namespace
}  // namespace basin
