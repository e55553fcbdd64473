#include "hessian/curvature_operator.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/device.h"
#include "core/runtime.h"
#include "core/seed.h"
#include "hessian/objective.h"
#include "hessian/operators.h"
#include "tests/support/analytic_models.h"
#include "tests/support/matrices.h"
#include "tests/support/process_memory.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

constexpr int64_t kExamples = 23, kMicroBatch = 8;

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Network {
  std::shared_ptr<Model> model = testing::tiny_mlp();
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), kExamples);
  Objective objective(LossKind loss, int64_t graph_memory = 0) {
    return Objective(model, loss, batch.images, batch.labels, kMicroBatch, graph_memory);
  }
  /// One reverse pass per row: shares autograd with the operators, not their way to a product.
  at::Tensor rows(const at::Tensor& outputs) {
    std::vector<at::Tensor> rows, parameters;
    for (const ParameterInfo& p : model->parameter_table()) parameters.push_back(p.tensor);
    for (const at::Tensor& output : outputs.flatten().unbind()) {
      std::vector<at::Tensor> flat;
      for (const at::Tensor& g : torch::autograd::grad({output}, parameters, {}, true))
        flat.push_back(g.flatten());
      rows.push_back(at::cat(flat));
    }
    return at::stack(rows);
  }
  at::Tensor jacobian() { return rows(model->forward(batch.images)); }  // [n * classes, p]
  at::Tensor gradients(LossKind loss) {
    return rows(example_losses(loss, model->forward(batch.images), batch.labels));  // [n, p]
  }
};

class EveryLoss : public ::testing::TestWithParam<LossKind> {};
INSTANTIATE_TEST_SUITE_P(Losses, EveryLoss, ::testing::Values(LossKind::cross_entropy, LossKind::mse),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Float64 all through; products and dense matrices differ by the order of sums alone.
constexpr double kProductRounding = 1e-10;

TEST_P(EveryLoss, GaussNewtonIsTheJacobiansSandwich) {
  Network net;
  Objective objective = net.objective(GetParam());
  CurvatureOperator op(objective, Curvature::gauss_newton);
  const at::Tensor jacobian = net.jacobian().view({kExamples, 3, -1});
  const at::Tensor p = at::softmax(net.model->forward(net.batch.images), 1).detach();
  at::Tensor expected = at::zeros({op.size(), op.size()}, at::kDouble);
  for (int64_t i = 0; i < kExamples; ++i) {
    const at::Tensor middle =
        GetParam() == LossKind::mse ? at::eye(3, at::kDouble) : at::diag(p[i]) - at::outer(p[i], p[i]);
    expected += jacobian[i].t().matmul(middle).matmul(jacobian[i]) / kExamples;
  }
  EXPECT_LT(relative_error(testing::dense_matrix(op), expected), kProductRounding);
}

TEST_P(EveryLoss, FisherAndCovarianceAreSumsOverExamples) {
  Network net;
  Objective objective = net.objective(GetParam());
  const at::Tensor g = net.gradients(GetParam()), mean = g.mean(0);
  CurvatureOperator fisher(objective, Curvature::empirical_fisher);
  CurvatureOperator covariance(objective, Curvature::gradient_covariance);
  EXPECT_LT(relative_error(testing::dense_matrix(fisher), g.t().matmul(g) / kExamples), kProductRounding);
  const at::Tensor centred = g - mean;
  EXPECT_LT(relative_error(testing::dense_matrix(covariance), centred.t().matmul(centred) / kExamples),
            kProductRounding);
}

TEST(CurvatureOperator, GaussNewtonOfALinearModelIsItsHessian) {
  const at::Tensor x = testing::sine_numbers({13, 4}), labels = at::arange(13).remainder(3);
  Objective objective(
      std::make_shared<testing::LinearModel>(testing::sine_numbers({3, 4}, 100), /*unused=*/true),
      LossKind::cross_entropy, x, labels, 5);
  CurvatureOperator hessian(objective, Curvature::hessian), ggn(objective, Curvature::gauss_newton);
  EXPECT_LT(relative_error(testing::dense_matrix(ggn), testing::dense_matrix(hessian)), kProductRounding);
}

TEST(CurvatureOperator, MemoryChangesNoBit) {
  Network net;
  Objective lean = net.objective(LossKind::cross_entropy);
  Objective roomy = net.objective(LossKind::cross_entropy, int64_t{1} << 30);
  for (const Curvature kind : {Curvature::hessian, Curvature::gauss_newton, Curvature::empirical_fisher,
                               Curvature::gradient_covariance}) {
    CurvatureOperator rebuilt(lean, kind), kept(roomy, kind);
    const at::Tensor v = testing::sine_numbers({rebuilt.size()});
    const at::Tensor expected = rebuilt.apply(v);
    EXPECT_TRUE(at::equal(kept.apply(v), expected)) << to_string(kind);
    EXPECT_TRUE(at::equal(kept.apply(v), expected)) << to_string(kind);
    EXPECT_EQ(rebuilt.graphs_kept(), 0);
    EXPECT_EQ(kept.graphs_kept(), roomy.micro_batches());
    EXPECT_GT(kept.bytes_kept(), 0);
  }
}

TEST(CurvatureOperator, KeepsAsManyGraphsAsTheBudgetHolds) {
  Network net;
  Objective roomy = net.objective(LossKind::cross_entropy, int64_t{1} << 30);
  CurvatureOperator all(roomy, Curvature::hessian);
  const at::Tensor v = testing::sine_numbers({all.size()});
  const at::Tensor expected = all.apply(v);
  int64_t most = 0;
  bool some_rebuilt = false;  // while others are kept
  for (int64_t eighths = 4; eighths <= 24; ++eighths) {
    const int64_t budget = all.bytes_kept() * eighths / 8;
    Objective tight = net.objective(LossKind::cross_entropy, budget);
    CurvatureOperator some(tight, Curvature::hessian);
    EXPECT_TRUE(at::equal(some.apply(v), expected));
    EXPECT_LE(some.bytes_kept(), budget);
    EXPECT_GE(some.graphs_kept(), most);
    most = some.graphs_kept();
    some_rebuilt = some_rebuilt || (most >= 1 && most < roomy.micro_batches());
    EXPECT_TRUE(at::equal(some.apply(v), expected));
  }
  EXPECT_TRUE(some_rebuilt);
  EXPECT_EQ(most, roomy.micro_batches());
}

/// Physical memory that two products take over their budget, as the kernel counts it, with Basin's settings
/// of the allocator: for a process of its own. -1 where the budget held no graph or all eight.
double share_of_budget(int64_t width, int64_t budget) {
  RuntimeOptions runtime;
  runtime.device = "cpu";
  runtime.threads = 1;
  apply_runtime(runtime);
  const InputShape shape{3, 32, 32, 10};
  const auto model = testing::make_test_model("small_cnn", {fmt::format("widths=[{}, {}]", width, width)},
                                              shape, 1, at::kFloat);
  const auto batch = testing::tiny_batch(shape, 400, 1, at::kFloat);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 50, budget);
  CurvatureOperator hessian(objective, Curvature::hessian);
  const at::Tensor v = testing::sine_numbers({hessian.size()}).to(at::kFloat);
  hessian.repeat_difference();  // what a process pays once
  const int64_t before = testing::of_this_process("VmRSS:");
  for (int product = 0; product < 2; ++product) hessian.apply(v);
  if (hessian.graphs_kept() == 0 || hessian.graphs_kept() == 8) return -1;
  return static_cast<double>(testing::of_this_process("VmHWM:") - before) / static_cast<double>(budget);
}

TEST(CurvatureOperator, KeepsWithinItsBudgetOfMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's allocator holds back what was freed";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process from scratch
  for (const auto& [width, mebibytes] : {std::pair{16, 24}, {32, 56}, {64, 112}}) {
    const auto measure = [&] {
      const double share = share_of_budget(width, mebibytes * kMebibyte);
      fmt::print(stderr, "{} of the budget\n", share);
      // A budget counts tensors and an allowance for the rest (kScratch): a tenth for what that misses.
      std::exit(share >= 0.5 && share <= 1.1 ? 0 : 1);
    };
    EXPECT_EXIT(measure(), ::testing::ExitedWithCode(0), "") << "width " << width;
  }
}

TEST(CurvatureOperator, SeesWhetherProductsRepeat) {
  Network net;
  Objective objective = net.objective(LossKind::cross_entropy);
  EXPECT_EQ(CurvatureOperator(objective, Curvature::hessian).repeat_difference(), 0);
}

}  // namespace
}  // namespace basin
