// The probe `ledger` against dense matrices, single gradients one by one, and closed forms on a quadratic.
#include "probes/ledger.h"

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

constexpr double kRate = 0.1;  // run_probe's

struct LedgerFixture {
  explicit LedgerFixture(LossKind loss = LossKind::cross_entropy,
                         std::shared_ptr<Model> network = testing::tiny_mlp(),
                         at::ScalarType dtype = at::kDouble)
      : batch(testing::tiny_batch(testing::tiny_shape(), 30, 1, dtype)),
        model(std::move(network)),
        objective(model, loss, batch.images, batch.labels, 8) {}

  ProbeResult run(const std::vector<std::string>& settings = {}, int64_t batch_size = 6,
                  const Optimizer* optimizer = nullptr) {
    return run_probe("ledger", objective, settings, 11, 0, optimizer, {}, batch_size);
  }
  double value(const ProbeResult& result, const std::string& name) {
    return quantity(result, name).value.at(0);
  }
  /// At another learning rate, of a training set of which these are a part.
  ProbeResult run_at(double rate, int64_t train_examples, const std::vector<std::string>& settings) {
    const ProbeEntry& entry = find_entry(probe_registry(), "ledger", "probe");
    const auto sgd = make_test_optimizer("sgd", {"momentum=0"}, model->parameter_table());
    ProbeContext context{objective, 11, train_examples, "0123", "train", sgd.get(), rate};
    context.batch_size = 6;
    return entry.make(*testing::options_with(entry, settings))->run(context);
  }
  at::Tensor dense_hessian() {
    CurvatureOperator hessian(objective, Curvature::hessian);
    return testing::dense_matrix(hessian);
  }
  /// [example, parameter], by a backward pass each.
  at::Tensor single_gradients() {
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < objective.examples(); ++i)
      rows.push_back(objective.gradient_over(at::full({1}, i, at::kLong)));
    return at::stack(rows).to(at::kDouble);
  }

  testing::TinyBatch batch;
  std::shared_ptr<Model> model;
  Objective objective;
};

TEST(LedgerProbe, CurvatureAndNoiseAreThoseOfDenseMatricesAndSingleGradients) {
  LedgerFixture f;
  const ProbeResult result = f.run({"tolerance=1e-6", "b_hessian=false"});
  const double largest = std::get<0>(at::linalg_eigh(f.dense_hessian())).max().item<double>();
  // plain SGD: P = 1, limit 2
  EXPECT_NEAR(f.value(result, "curvature_over_limit"), kRate * largest / 2, 1e-9);  // residual^2 / gap

  const at::Tensor g = f.single_gradients(), mean = g.mean(0);
  const double n = 30, b = 6, spread = (g - mean).square().sum().item<double>() / (n - 1);
  const double squared = mean.square().sum().item<double>();
  // All examples and single gradients: exact. Batches without replacement have S^2 (1/B - 1/N).
  EXPECT_NEAR(f.value(result, "noise_over_gradient"), spread * (1 / b - 1 / n) / squared, 1e-10);
  EXPECT_NEAR(f.value(result, "b_simple"), spread * (n - 1) / n / squared, 1e-8);
  EXPECT_EQ(f.value(f.run({"b_hessian=false"}, 30), "noise_over_gradient"), 0);
  EXPECT_EQ(f.value(f.run({"b_hessian=false"}, 300), "noise_over_gradient"), 0);
}

// A linear network under squared error: the loss is a quadratic, so its critical sharpness is G'HG / G'G.
TEST(LedgerProbe, OnAQuadraticCriticalSharpnessAndShareAreClosedForms) {
  LedgerFixture f(LossKind::mse, testing::make_test_model("mlp", {"hidden=[]"}, testing::tiny_shape()));
  const ProbeResult result = f.run({"step_tolerance=1e-6", "b_hessian=false"});
  const at::Tensor h = f.dense_hessian(), g = f.objective.gradient().to(at::kDouble);
  const double curvature = (g.dot(h.mv(g)) / g.dot(g)).item<double>();
  EXPECT_NEAR(f.value(result, "critical_sharpness"), curvature, 1e-6 * curvature);  // the tolerance
  const Quantity& sharpness = quantity(result, "critical_sharpness");
  EXPECT_LE(sharpness.ci_low[0], curvature);
  EXPECT_GE(sharpness.ci_high[0], curvature);
  EXPECT_NEAR(f.value(result, "critical_over_limit"), kRate * curvature / 2, 1e-6);
  // L(w) - L(w - eta g) = eta g'g - eta^2 g'Hg / 2
  EXPECT_NEAR(f.value(result, "first_order_share"), 1 - kRate * curvature / 2, 1e-9);
  const double largest = std::get<0>(at::linalg_eigh(h)).max().item<double>();
  EXPECT_LE(curvature, largest);
}

// At the end of a schedule the rate is next to nothing: what one update would change is lost in rounding, what the loss does along
// the gradient is not.
TEST(LedgerProbe, DoesNotTakeRoundingForACriticalRate) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    LedgerFixture f(LossKind::mse, testing::make_test_model("mlp", {"hidden=[]"}, testing::tiny_shape()));
    const at::Tensor h = f.dense_hessian(), g = f.objective.gradient().to(at::kDouble);
    const double curvature = (g.dot(h.mv(g)) / g.dot(g)).item<double>();
    LedgerFixture same(LossKind::mse,
                       testing::make_test_model("mlp", {"hidden=[]"}, testing::tiny_shape(), 1, dtype),
                       dtype);
    for (const double rate : {1e-2, 1e-14}) {
      const ProbeResult result = same.run_at(rate, 30, {"step_tolerance=1e-3", "b_hessian=false"});
      // Half the tolerance, and rounding in float32 of a loss that changes by a tenth of itself.
      EXPECT_NEAR(f.value(result, "critical_sharpness"), curvature, 1e-3 * curvature) << dtype << ' ' << rate;
      const Quantity& share = quantity(result, "first_order_share");
      EXPECT_EQ(share.status, rate == 1e-2 ? ProbeStatus::ok : ProbeStatus::not_resolved);
      EXPECT_EQ(std::isnan(share.value[0]), rate != 1e-2);
    }
  }
}

TEST(LedgerProbe, GoesAlongThePreconditionedGradient) {
  LedgerFixture f(LossKind::mse, testing::make_test_model("mlp", {"hidden=[]"}, testing::tiny_shape()));
  for (const std::string name : {"adam", "lars", "lamb"}) {
    SCOPED_TRACE(name);
    const auto optimizer = make_test_optimizer(name, {}, f.model->parameter_table());
    optimizer->set_learning_rate(1e-6);
    const auto put_gradient = [&] {
      const std::vector<at::Tensor> g = f.objective.parameters().unflatten(f.objective.gradient());
      for (size_t i = 0; i < g.size(); ++i) f.model->parameter_table()[i].tensor.mutable_grad() = g[i];
    };
    put_gradient();
    optimizer->step();
    const at::Tensor g = f.objective.gradient().to(at::kDouble), h = f.dense_hessian();
    std::vector<at::Tensor> p;
    for (const at::Tensor& part : optimizer->preconditioner(f.objective.parameters().unflatten(g)))
      p.push_back(part.to(at::kDouble).flatten());
    const at::Tensor d = g / at::cat(p);
    const double expected = (d.dot(h.mv(d)) / g.dot(d)).item<double>();
    const ProbeResult result =
        f.run({"step_tolerance=1e-6", "b_hessian=false", "tolerance=1e-4"}, 6, optimizer.get());
    EXPECT_NEAR(f.value(result, "critical_sharpness"), expected, 2e-6 * expected);
    EXPECT_EQ(attribute<bool>(result, "limit_is_gauge"), name != "adam");
    const double limit =
        name == "lars" ? 2 * 1.9 : 2 * 1.9 / 0.1;  // heavy ball; a moving average of gradients
    EXPECT_NEAR(attribute<double>(result, "stability_limit"), limit, 1e-12 * limit);
    const at::Tensor root = at::cat(p).rsqrt();
    const double largest = std::get<0>(at::linalg_eigh(root.unsqueeze(1) * h * root)).max().item<double>();
    // Steps add up: heavy ball by 1/(1 - momentum), a moving average doesn't.
    const double promised = (name == "lars" ? 10 : 1) * limit * g.dot(d).item<double>() / largest;
    const Quantity& decrease = quantity(result, "decrease_at_limit");
    EXPECT_NEAR(decrease.value[0], promised, 1e-3 * promised);  // the tolerance of lambda_1 is 1e-4
    const double rounding = 1e-6 * promised;                    // of the products, in float32
    EXPECT_LE(decrease.ci_low[0], promised + rounding);
    EXPECT_GE(decrease.ci_high[0], promised - rounding);
  }
}

// 30 of very many examples, next to a minimum: |G|^2 is lost in its error, and noise over gradient has a lower end alone.
TEST(LedgerProbe, NoiseOverALostGradientHasALowerEndAlone) {
  LedgerFixture f(LossKind::mse, testing::make_test_model("mlp", {"hidden=[]"}, testing::tiny_shape()));
  const at::Tensor g = f.objective.gradient().to(at::kDouble);
  const ParameterVector& weights = f.objective.parameters();
  weights.scatter(weights.gather() - 0.7 * at::linalg_pinv(f.dense_hessian()).mv(g));
  const ProbeResult result = f.run_at(0.1, 1'000'000, {"b_hessian=false", "estimator=per_example"});
  const Quantity& noise = quantity(result, "noise_over_gradient");
  EXPECT_EQ(noise.status, ProbeStatus::not_resolved);
  EXPECT_GT(noise.ci_low[0], 1);
  EXPECT_EQ(noise.ci_high[0], kInfinity);
}

TEST(LedgerProbe, WithoutABatchSizeThereIsNoNoise) {
  LedgerFixture f;
  const ProbeResult result = f.run({"b_hessian=false"}, 0);
  EXPECT_TRUE(std::isnan(f.value(result, "noise_over_gradient")));
  EXPECT_EQ(quantity(result, "noise_over_gradient").status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isfinite(f.value(result, "critical_sharpness")));
}

}  // namespace
}  // namespace basin
