#include "probes/relative_flatness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "probes/estimators/set_estimates.h"
#include "tests/probes/probe_fixture.h"
#include "tests/probes/relu_networks.h"
#include "tests/probes/sharpness_models.h"
#include "tests/support/matrices.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

struct Flatness {
  double kappa = 0, simple = 0;
};

at::Tensor dense_hessian(Objective& objective) {
  CurvatureOperator op(objective, Curvature::hessian);
  return testing::dense_matrix(op);
}

/// By the dense Hessian h of all parameters, block by block as the definition has it.
Flatness flatness_of(const Objective& objective, const at::Tensor& h, const std::string& layer) {
  int64_t first = 0;
  for (const ParameterInfo& p : objective.parameters().parameters()) {
    if (p.layer != layer || p.kind != ParameterKind::weight) {
      first += p.tensor.numel();
      continue;
    }
    const at::Tensor w = p.tensor.detach();
    const int64_t rows = w.size(0), columns = w.size(1);
    Flatness sums;
    for (int64_t s = 0; s < rows; ++s) {
      for (int64_t t = 0; t < rows; ++t) {
        const at::Tensor block =
            h.narrow(0, first + s * columns, columns).narrow(1, first + t * columns, columns);
        const double trace = block.trace().item<double>();
        sums.kappa += w[s].dot(w[t]).item<double>() * trace;
        if (s == t) sums.simple += trace;
      }
    }
    sums.simple *= w.square().sum().item<double>();
    return sums;
  }
  throw std::out_of_range(layer);
}

void expect_flatness(const ProbeResult& result, const Flatness& exact, double tolerance) {
  ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
  EXPECT_NEAR(quantity(result, "relative_flatness").value[0], exact.kappa, tolerance * std::abs(exact.kappa));
  EXPECT_NEAR(quantity(result, "relative_flatness_simple").value[0], exact.simple,
              tolerance * std::abs(exact.simple));
}

constexpr double kRounding = 1e-12;  // float64 sums of some thousand terms

Objective on_images(const std::shared_ptr<Model>& model, const InputShape& shape, int64_t examples,
                    LossKind loss = LossKind::cross_entropy, int64_t micro_batch = 7) {
  const testing::TinyBatch batch = testing::tiny_batch(shape, examples);
  return Objective(model, loss, batch.images, batch.labels, micro_batch, /*graph_memory=*/1 << 30);
}

TEST(RelativeFlatness, ClosedFormIsThatOfTheDenseHessian) {
  Objective objective = on_images(testing::tiny_mlp(), testing::tiny_shape(), 30);
  const ProbeResult result = run_probe("relative_flatness", objective);
  expect_flatness(result, flatness_of(objective, dense_hessian(objective), "fc3"), kRounding);
  EXPECT_EQ(attribute<std::string>(result, "layer"), "fc3");
  EXPECT_EQ(attribute<int64_t>(result, "hvps"), 0);
  EXPECT_EQ(quantity(result, "relative_flatness").uncertainty_kind, UncertaintyKind::none);
}

TEST(RelativeFlatness, ProductsGiveEveryLayersExactly) {
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::mse}) {
    Objective objective = on_images(testing::tiny_mlp(), testing::tiny_shape(), 30, loss);
    const at::Tensor h = dense_hessian(objective);
    for (const auto& [layer, outputs] : {std::pair{"fc1", 8}, {"fc2", 5}, {"fc3", 3}}) {
      const ProbeResult result =
          run_probe("relative_flatness", objective, {"method=hessian", fmt::format("layer={}", layer)});
      SCOPED_TRACE(layer);
      expect_flatness(result, flatness_of(objective, h, layer), kRounding);
      EXPECT_EQ(attribute<int64_t>(result, "hvps"), outputs);
      EXPECT_EQ(quantity(result, "relative_flatness").definition, "relative-flatness-hessian");
    }
  }
}

// In-place ReLU after the layer, and a batch norm that the objective folds into it.
TEST(RelativeFlatness, ProductsGoThroughReluAndFrozenNorms) {
  for (const std::string norm : {"none", "batch"}) {
    const auto model =
        testing::make_test_model("mlp", {"hidden=[6, 4]", "norm=" + norm}, testing::tiny_shape());
    for (const auto& [name, tensor] : model->buffer_table()) at::Tensor(tensor).add_(0.3);
    Objective objective = on_images(model, testing::tiny_shape(), 30);
    const at::Tensor h = dense_hessian(objective);
    for (const std::string layer : {"fc1", "fc2"}) {
      SCOPED_TRACE(norm + layer);
      expect_flatness(run_probe("relative_flatness", objective, {"method=hessian", "layer=" + layer}),
                      flatness_of(objective, h, layer), kRounding);
    }
  }
}

// davidnet's logits are the last layer's outputs times 1/8 or so.
TEST(RelativeFlatness, AFactorOnTheLogitsIsInTheClosedForm) {
  Objective objective =
      on_images(testing::tiny_model("davidnet", {"logit_scale=0.125"}), testing::tiny_image_shape(), 12);
  const ProbeResult closed = run_probe("relative_flatness", objective);
  const ProbeResult products = run_probe("relative_flatness", objective, {"method=hessian"});
  EXPECT_GT(quantity(products, "relative_flatness").value[0], 0);
  expect_flatness(closed,
                  {quantity(products, "relative_flatness").value[0],
                   quantity(products, "relative_flatness_simple").value[0]},
                  kRounding);
}

TEST(RelativeFlatness, KeepsItsDigitsWhereTheSoftmaxIsAllButCertain) {
  const at::Tensor x = testing::sine_numbers({6, 4}), labels = at::zeros({6}, at::kLong);
  const at::Tensor w = testing::sine_numbers({2, 4}, 9) * 200;  // logits tens apart
  Objective objective(std::make_shared<testing::LinearModel>(w.clone()), LossKind::cross_entropy, x, labels,
                      6);
  // Two classes: p_0 p_1 |x|^2 |w_0 - w_1|^2, p_0 p_1 = 1/(2 + 2 cosh(f_0 - f_1)).
  const at::Tensor apart = x.matmul(w[0] - w[1]);
  ASSERT_GT(apart.abs().max().item<double>(), 40);
  const at::Tensor share = x.square().sum(1) / (2 + 2 * at::cosh(apart));
  const double distance = (w[0] - w[1]).square().sum().item<double>();
  const double exact = (share * distance).mean().item<double>();
  // An exponent of 100 carries a relative rounding of 1e-14.
  EXPECT_NEAR(quantity(run_probe("relative_flatness", objective), "relative_flatness").value[0], exact,
              1e-12 * exact);
}

TEST(RelativeFlatness, SignVectorsCoverTheExactValueByRepetition) {
  testing::ReluNetwork network;
  const auto model = testing::tiny_mlp();
  Objective objective(model, LossKind::cross_entropy, network.batch.images, network.batch.labels, 16);
  const Flatness exact = flatness_of(objective, dense_hessian(objective), "fc1");
  int covered = 0, covered_simple = 0;
  std::vector<double> values, errors;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ProbeResult result =
        run_probe("relative_flatness", objective, {"method=hessian", "layer=fc1", "samples=4"}, seed);
    const Quantity &kappa = quantity(result, "relative_flatness"),
                   &simple = quantity(result, "relative_flatness_simple");
    EXPECT_EQ(kappa.uncertainty_kind, UncertaintyKind::standard_error);
    covered += kappa.ci_low[0] <= exact.kappa && exact.kappa <= kappa.ci_high[0];
    covered_simple += simple.ci_low[0] <= exact.simple && exact.simple <= simple.ci_high[0];
    values.push_back(kappa.value[0]);
    errors.push_back(kappa.uncertainty[0]);
  }
  // 95 % of 200; three binomial standard deviations are 9.
  for (const int count : {covered, covered_simple}) {
    EXPECT_GE(count, 181);
    EXPECT_LE(count, 199);
  }
  const at::Tensor found = at::tensor(values, at::kDouble);
  const double scatter = found.std().item<double>();
  EXPECT_NEAR(found.mean().item<double>(), exact.kappa, 3.5 * scatter / std::sqrt(200.0));
  // The scatter of 200 is known to 5 %.
  EXPECT_NEAR(std::sqrt(at::tensor(errors, at::kDouble).square().mean().item<double>()) / scatter, 1, 0.2);
}

TEST(RelativeFlatness, MicroBatchesChangeRoundingAlone) {
  const auto of = [](int64_t micro_batch) {
    Objective objective =
        on_images(testing::tiny_mlp(), testing::tiny_shape(), 30, LossKind::cross_entropy, micro_batch);
    return quantity(run_probe("relative_flatness", objective, {"method=hessian", "layer=fc1", "samples=3"}),
                    "relative_flatness")
        .value[0];
  };
  EXPECT_NEAR(of(30), of(7), 1e-13 * std::abs(of(30)));
}

TEST(RelativeFlatness, StaysUnderRescalingOfLayersAndOfUnitsThatALayerMakes) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const auto values = [&](const std::string& layer) {
    const ProbeResult result =
        run_probe("relative_flatness", objective, {"method=hessian", "layer=" + layer});
    return std::pair(quantity(result, "relative_flatness").value[0],
                     quantity(result, "relative_flatness_simple").value[0]);
  };
  const auto last = values("fc2"), first = values("fc1");
  network.rescale(7);  // layer by layer: the simple version too
  EXPECT_NEAR(values("fc2").first, last.first, kRounding * last.first);
  EXPECT_NEAR(values("fc2").second, last.second, kRounding * last.second);
  EXPECT_NEAR(values("fc1").first, first.first, kRounding * first.first);
  testing::rescale_units(*network.model, "fc1", "fc2",
                         {5, 1, 0.2, 3});  // of the units that fc1 makes, one by one
  EXPECT_NEAR(values("fc1").first, first.first, kRounding * first.first);
  EXPECT_GT(std::abs(values("fc1").second / first.second - 1), 0.1);
  // |phi|^2 and G of the layer that reads them don't change by factors that cancel.
  EXPECT_GT(std::abs(values("fc2").first / last.first - 1), 0.1);
}

// A part of the training set: its mean with the error of drawing without replacement.
TEST(RelativeFlatness, OfPartOfTheTrainingSetHasAnError) {
  Objective objective = on_images(testing::tiny_mlp(), testing::tiny_shape(), 30);
  std::vector<double> single;
  for (int64_t i = 0; i < 30; ++i) {
    const std::unique_ptr<Problem> one = objective.part(at::full({1}, i, at::kLong));
    single.push_back(quantity(run_probe("relative_flatness", *one), "relative_flatness").value[0]);
  }
  const at::Tensor shares = at::tensor(single, at::kDouble);
  const Quantity kappa = quantity(run_probe("relative_flatness", objective, {}, 11, 50), "relative_flatness");
  EXPECT_NEAR(kappa.value[0], shares.mean().item<double>(), kRounding);
  const double error = shares.std().item<double>() * std::sqrt((1 - 30.0 / 50) / 30);
  EXPECT_NEAR(kappa.uncertainty[0], error, 1e-10 * error);
  const std::unique_ptr<Problem> one = objective.part(at::zeros({1}, at::kLong));
  EXPECT_EQ(run_probe("relative_flatness", *one, {}, 11, 50).status, ProbeStatus::not_resolved);
}

TEST(RelativeFlatness, RefusesWhatHasNoClosedFormOrIsNotLinear) {
  Objective squares = on_images(testing::tiny_mlp(), testing::tiny_shape(), 10, LossKind::mse);
  const ProbeResult none = run_probe("relative_flatness", squares);
  EXPECT_EQ(none.status, ProbeStatus::unavailable);
  EXPECT_EQ(none.message,
            "the closed form is that of loss = \"cross_entropy\"; method = \"hessian\" knows others");
  Objective entropy = on_images(testing::tiny_mlp(), testing::tiny_shape(), 10);
  EXPECT_EQ(
      testing::message_of([&] { run_probe("relative_flatness", entropy, {"layer=conv1"}); }),
      "relative_flatness.layer = \"conv1\": not a linear layer; the network's linear layers: fc1, fc2, fc3");
  EXPECT_EQ(
      testing::message_of([&] { run_probe("relative_flatness", entropy, {"layer=fc1"}); }),
      "relative_flatness.layer = \"fc1\": the logits aren't the layer's outputs; use method = \"hessian\"");
}

TEST(SetEstimates, MeansOfASetAreCoveredByRepetition) {
  at::Generator generator = make_generator(3);
  const at::Tensor set = at::rand({100}, generator, at::kDouble).square();
  const double mean = set.mean().item<double>();
  int covered = 0;
  for (int i = 0; i < 1000; ++i) {
    const at::Tensor drawn = set.index_select(0, at::randperm(100, generator, at::kLong).narrow(0, 0, 60));
    const Estimate e = mean_of_set(drawn, 100);
    covered += e.low <= mean && mean <= e.high;
  }
  // 95 % of 1000; three binomial standard deviations are 21. Without the factor 1 - n/N it would be 99.8 %.
  EXPECT_GE(covered, 929);
  EXPECT_LE(covered, 971);
}

TEST(SetEstimates, SharesOfASetAreCoveredByRepetition) {
  at::Generator generator = make_generator(4);
  for (const int64_t have : {2, 60}) {  // of 200, of which 80 are drawn
    int covered = 0;
    for (int i = 0; i < 1000; ++i) {
      const int64_t count =
          at::randperm(200, generator, at::kLong).narrow(0, 0, 80).lt(have).sum().item<int64_t>();
      const Estimate e = share_of_set(count, 80, 200);
      const double share = static_cast<double>(have) / 200;
      covered += e.low <= share && share <= e.high;
    }
    // Counts are whole numbers: of 2 no more than 0, 1 or 2 are drawn, and every interval covers.
    EXPECT_GE(covered, 929) << have;
    if (have == 60) {
      EXPECT_LE(covered, 975);
    }
  }
}

TEST(SetEstimates, AShareOfNoneHasAnInterval) {
  const Estimate none = share_of_set(0, 80, 200), all = share_of_set(80, 80, 80);
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.low, 0);
  EXPECT_GT(none.high, 0.01);
  EXPECT_LT(none.high, 0.05);
  EXPECT_GT(none.error, 0);
  EXPECT_EQ(all.value, 1);
  EXPECT_EQ(all.error, 0);
}

}  // namespace
}  // namespace basin
