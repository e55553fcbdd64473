#include "probes/preconditioned_curvature.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hessian/curvature_operator.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/matrices.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::make_test_optimizer;
using testing::quantity;
using testing::run_probe;

struct Fixture {
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 30);
  std::shared_ptr<Model> model = testing::tiny_mlp();
  Objective objective{model, LossKind::cross_entropy, batch.images, batch.labels, 8};

  std::unique_ptr<Optimizer> trained(const std::string& name, int steps) {
    auto optimizer = make_test_optimizer(name, {}, model->parameter_table());
    optimizer->set_learning_rate(0.01);
    for (int step = 0; step < steps; ++step) {
      const std::vector<at::Tensor> g = objective.parameters().unflatten(objective.gradient());
      for (size_t i = 0; i < g.size(); ++i) model->parameter_table()[i].tensor.mutable_grad() = g[i];
      optimizer->step();
    }
    return optimizer;
  }

  std::vector<at::Tensor> preconditioner(const Optimizer& optimizer) {
    return optimizer.preconditioner(objective.parameters().unflatten(objective.gradient()));
  }

  /// The largest eigenvalue of P^{-1} H by a dense solver that knows of no symmetry, P one step's ratio g /
  /// step.
  double dense_largest(const Optimizer& optimizer) {
    CurvatureOperator hessian(objective, Curvature::hessian);
    const std::vector<at::Tensor> diagonals = preconditioner(optimizer);
    const std::vector<KroneckerFactors> bases = optimizer.preconditioner_bases();
    std::vector<at::Tensor> blocks;
    for (size_t i = 0; i < diagonals.size(); ++i) {
      at::Tensor q = at::ones({1, 1}, at::kDouble);
      for (int64_t d = 0; d < diagonals[i].dim(); ++d) {
        const bool has_one = !bases.empty() && bases[i][static_cast<size_t>(d)].defined();
        q = at::kron(q, has_one ? bases[i][static_cast<size_t>(d)].to(at::kDouble)
                                : at::eye(diagonals[i].size(d), at::kDouble));
      }
      blocks.push_back(at::mm(q / diagonals[i].flatten().to(at::kDouble), q.t()));
    }
    const at::Tensor product = at::mm(at::block_diag(blocks), testing::dense_matrix(hessian));
    return at::real(at::linalg_eigvals(product)).max().item<double>();
  }
};

TEST(PreconditionedCurvature, AgreesWithADenseUnsymmetricSolverForEveryOptimiser) {
  int compared = 0;
  for (const OptimizerEntry& entry : optimizer_registry()) {
    const std::string& name = entry.name;
    SCOPED_TRACE(name);
    Fixture f;
    const auto optimizer = f.trained(name, 4);
    const ProbeResult result =
        run_probe("preconditioned_curvature", f.objective, {"tolerance=1e-7"}, 11, 0, optimizer.get());
    EXPECT_EQ(attribute<double>(result, "learning_rate"), 0.1);
    if (!entry.traits(*entry.make_options()).has_preconditioner) {
      EXPECT_EQ(result.status, ProbeStatus::not_resolved);
      EXPECT_TRUE(std::isnan(quantity(result, "lambda").value[0]));
      continue;
    }
    ++compared;
    EXPECT_EQ(result.status, ProbeStatus::ok);
    const double exact = f.dense_largest(*optimizer), found = quantity(result, "lambda").value[0];
    EXPECT_NEAR(found, exact, 1e-9 * std::abs(exact));  // residual^2 / gap, and LAPACK's rounding
    EXPECT_DOUBLE_EQ(quantity(result, "rate_lambda_1").value[0], 0.1 * found);
    const double limit = attribute<double>(result, "stability_limit");
    EXPECT_EQ(std::isnan(limit), optimizer->has_trust_ratios()) << "with them P moves with the gradient";
    EXPECT_TRUE(std::isnan(limit) || limit == optimizer->stability_limit());
    const double frozen = attribute<double>(result, "frozen_stability_limit");
    EXPECT_TRUE(std::isfinite(frozen)) << "with P held fixed there is a limit";
    EXPECT_TRUE(std::isnan(limit) || limit == frozen);
  }
  EXPECT_GT(compared, 0);
}

// An Adam whose gradients are those of training, with the statistics of a batch: along the biases before the norms they are rounding, and P
// is epsilon. By hand: P^{-1} H without the rows and columns of those biases.
TEST(PreconditionedCurvature, LeavesOutBiasesThatABatchNormCancels) {
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 30);
  for (const char* name : {"adam", "lamb"}) {
    SCOPED_TRACE(name);
    const auto model = testing::make_test_model("mlp", {"hidden=[6, 4]", "activation=tanh", "norm=batch"},
                                                testing::tiny_shape());
    const auto optimizer = make_test_optimizer(name, {}, model->parameter_table());
    optimizer->set_learning_rate(0.01);
    for (int step = 0; step < 4; ++step) {
      model->set_norm_mode(NormMode::accumulate);
      model->zero_grad();
      at::cross_entropy_loss(model->forward(batch.images), batch.labels).backward();
      optimizer->step();
    }
    model->zero_grad();
    Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 30);
    const ProbeResult result =
        run_probe("preconditioned_curvature", objective, {"tolerance=1e-7"}, 11, 0, optimizer.get());
    EXPECT_EQ(attribute<int64_t>(result, "held_weights"), 6 + 4);

    CurvatureOperator hessian(objective, Curvature::hessian);
    std::vector<at::Tensor> p =
        optimizer->preconditioner(objective.parameters().unflatten(objective.gradient()));
    double smallest = INFINITY;
    std::vector<at::Tensor> kept;
    for (size_t i = 0; i < p.size(); ++i) {
      const std::string& parameter = model->parameter_table()[i].name;
      const bool cancelled = parameter == "fc1.bias" || parameter == "fc2.bias";
      if (cancelled) smallest = std::min(smallest, p[i].min().item<double>());
      kept.push_back(at::full({p[i].numel()}, !cancelled, at::kBool));
      p[i] = p[i].flatten().to(at::kDouble);
    }
    const at::Tensor diagonal = at::cat(p), rows = at::cat(kept).nonzero().flatten();
    const at::Tensor whole = at::diag(1 / diagonal).mm(testing::dense_matrix(hessian));
    const auto largest = [](const at::Tensor& m) {
      return at::real(at::linalg_eigvals(m)).max().item<double>();
    };
    const double exact = largest(whole.index_select(0, rows).index_select(1, rows));
    EXPECT_NEAR(quantity(result, "lambda").value[0], exact, 1e-9 * std::abs(exact));
    EXPECT_LT(smallest, 1e-5 * diagonal.max().item<double>()) << "no P of rounding: this tests nothing";
    EXPECT_GT(largest(whole), 100 * exact) << "the biases make no difference: this tests nothing";
  }
}

TEST(PreconditionedCurvature, AStateWithoutUpdatesIsNotResolved) {
  Fixture f;
  const auto fresh = f.trained("lamb", 0);
  const ProbeResult result = run_probe("preconditioned_curvature", f.objective, {}, 11, 0, fresh.get());
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message,
            "the optimiser has made no update yet, or its preconditioner isn't diagonal in any basis");
  EXPECT_TRUE(std::isnan(quantity(result, "lambda").value[0]));
  EXPECT_EQ(quantity(result, "rate_lambda_1").status, ProbeStatus::not_resolved);
}

}  // namespace
}  // namespace basin
