// Loss and accuracy at points of weight space, and where normalisation takes its statistics there.
#include "landscape/point_evaluator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/seed.h"
#include "landscape/affine_frame.h"
#include "tests/landscape/surface_models.h"
#include "tests/support/tiny_models.h"

namespace basin::testing {
namespace {

constexpr double kRounding = 1e-13;  // float64 sums of 21 numbers of order 1 in another order

struct Scene {
  std::shared_ptr<Model> model;
  at::Tensor images, labels;
  std::unique_ptr<Objective> objective;
  LabelledSet set() const { return {objective.get(), labels}; }
};

// Five examples more than a micro-batch, so that sums have two unequal pieces.
Scene scene_of(std::shared_ptr<Model> model, const InputShape& shape, at::ScalarType dtype,
               int64_t examples = 21) {
  const TinyBatch batch = tiny_batch(shape, examples, 3, dtype);
  Scene scene{std::move(model), batch.images, batch.labels, nullptr};
  scene.objective =
      std::make_unique<Objective>(scene.model, LossKind::cross_entropy, batch.images, batch.labels, 16);
  return scene;
}

Scene normalised_scene() {
  const InputShape shape{.channels = 1, .height = 2, .width = 2, .classes = 3};
  auto model = std::make_shared<NormalisedLinearModel>(make_generator(5));
  for (const ParameterInfo& p : model->parameter_table())
    p.tensor.set_data(p.tensor.detach().to(at::kDouble));
  for (const auto& [name, buffer] : model->buffer_table()) buffer.set_data(buffer.to(at::kDouble));
  return scene_of(std::move(model), shape, at::kDouble);
}

TEST(PointEvaluator, AtTheOriginHasTheVeryLossOfTheNetwork) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Scene scene = scene_of(tiny_mlp(1, dtype), tiny_shape(), dtype);
    const double loss = scene.objective->loss(), accuracy = scene.objective->accuracy();
    PointEvaluator evaluator(scene.set(), {}, {});
    const PointScore score = evaluator.at(evaluator.origin());
    EXPECT_EQ(score.train.loss, loss);
    EXPECT_EQ(score.train.accuracy, accuracy);
    EXPECT_TRUE(score.finite);
    EXPECT_TRUE(std::isnan(score.test.loss));
  }
}

TEST(PointEvaluator, BothEndsOfALineAreTheNetworksBitForBit) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Scene first = scene_of(tiny_mlp(1, dtype), tiny_shape(), dtype),
          second = scene_of(tiny_mlp(2, dtype), tiny_shape(), dtype);
    {
      const at::NoGradGuard no_grad;  // what a + (b - a) would get wrong: sizes apart, and the sign of zero
      at::Tensor first_weight = first.model->parameter_table()[0].tensor.detach().flatten(),
                 second_weight = second.model->parameter_table()[0].tensor.detach().flatten();
      first_weight[0] = 1e20;
      second_weight[0] = 1e-20;
      second_weight[1] = -0.0;
    }
    const ParameterVector other(second.model->parameter_table());
    PointEvaluator evaluator(first.set(), {}, {});
    AffineFrame frame(evaluator.origin(), evaluator.states().parameter_size());
    frame.add_point(StateVector(*second.model).gather());
    const at::Tensor before = evaluator.states().parameters().gather();
    evaluator.place(frame.at({1}));
    const at::Tensor there = evaluator.states().parameters().gather();
    EXPECT_TRUE(at::equal(there, other.gather()));
    EXPECT_TRUE(at::equal(at::signbit(there), at::signbit(other.gather())));
    EXPECT_EQ(evaluator.at(frame.at({1})).train.loss, second.objective->loss());
    evaluator.place(frame.at({0}));
    EXPECT_TRUE(at::equal(evaluator.states().parameters().gather(), before));
  }
}

TEST(PointEvaluator, PutsTheNetworkBack) {
  Scene scene = normalised_scene();
  const StateVector states(*scene.model);
  const at::Tensor before = states.gather();
  {
    PointEvaluator evaluator(scene.set(), {}, {StatisticsMode::reset, 8});
    evaluator.at(before + 0.5);
    EXPECT_FALSE(at::equal(states.gather(), before));
  }
  EXPECT_TRUE(at::equal(states.gather(), before));
  EXPECT_EQ(scene.model->norm_mode(), NormMode::folded);
}

// Mean and standard error over examples by another route: numpy's formulas on the losses themselves.
TEST(PointEvaluator, ErrorIsTheStandardErrorOverExamples) {
  Scene scene = scene_of(tiny_mlp(), tiny_shape(), at::kDouble);
  PointEvaluator evaluator(scene.set(), scene.set(), {});
  const PointScore score = evaluator.at(evaluator.origin(), /*keep_examples=*/true);
  const at::Tensor losses = at::nll_loss(at::log_softmax(scene.model->forward(scene.images), 1), scene.labels,
                                         {}, at::Reduction::None);
  EXPECT_TRUE(at::allclose(score.train.losses, losses, 1e-14, 0));
  // Sums of squares of 21 numbers of order 1 in float64.
  EXPECT_NEAR(score.train.loss_error, losses.std().item<double>() / std::sqrt(21.0), 1e-14);
  EXPECT_EQ(score.train.correct.to(at::kDouble).mean().item<double>(), score.train.accuracy);
  EXPECT_EQ(score.test.loss, score.train.loss);
}

// The loss of the normalised linear network with statistics by hand.
double loss_with(const Scene& scene, const at::Tensor& mean, const at::Tensor& variance) {
  const auto& p = scene.model->parameter_table();
  const at::Tensor z = scene.images.flatten(1).mm(p[0].tensor.t()) + p[1].tensor;
  const at::Tensor logits = (z - mean) / at::sqrt(variance + 1e-5) * p[2].tensor + p[3].tensor;
  return at::nll_loss(at::log_softmax(logits, 1), scene.labels).item<double>();
}

at::Tensor linear_output(const Scene& scene) {
  const auto& p = scene.model->parameter_table();
  return scene.images.flatten(1).mm(p[0].tensor.t()) + p[1].tensor;
}

TEST(PointEvaluator, TakesStatisticsAsTheModeSays) {
  Scene scene = normalised_scene();
  const at::NoGradGuard no_grad;
  PointEvaluator evaluator(scene.set(), {}, {StatisticsMode::reset, 8});
  const at::Tensor state = evaluator.origin() * 1.5 + 0.25;  // statistics too: mean 0.25, variance 1.75
  const double reset = evaluator.at(state).train.loss;
  // Ghost batches of 8, 8 and 5 of 21, variances unbiased, weighted by size.
  at::Tensor mean = at::zeros({3}, at::kDouble), variance = at::zeros({3}, at::kDouble);
  for (const auto& [first, count] : {std::pair{0, 8}, {8, 8}, {16, 5}}) {
    const at::Tensor piece = linear_output(scene).narrow(0, first, count);
    mean += piece.mean(0) * (count / 21.0);
    variance += piece.var(0, /*unbiased=*/true) * (count / 21.0);
  }
  EXPECT_NEAR(reset, loss_with(scene, mean, variance), kRounding);

  evaluator.set_statistics(StatisticsMode::interpolate);
  const double interpolated = evaluator.at(state).train.loss;
  EXPECT_NEAR(interpolated,
              loss_with(scene, at::full({3}, 0.25, at::kDouble), at::full({3}, 1.75, at::kDouble)),
              kRounding);

  evaluator.set_statistics(StatisticsMode::frozen);  // the network's own, not what `reset` left
  const double frozen = evaluator.at(state).train.loss;
  EXPECT_NEAR(frozen, loss_with(scene, at::zeros({3}, at::kDouble), at::ones({3}, at::kDouble)), kRounding);
  EXPECT_GT(std::abs(reset - interpolated), 1e-3);
  EXPECT_GT(std::abs(frozen - interpolated), 1e-3);
}

TEST(PointEvaluator, NotFiniteIsAStatusNotAnError) {
  Scene scene = scene_of(tiny_mlp(), tiny_shape(), at::kDouble);
  PointEvaluator evaluator(scene.set(), {}, {});
  const PointScore score = evaluator.at(evaluator.origin() * std::nan(""));
  EXPECT_FALSE(score.finite);
  EXPECT_TRUE(std::isnan(score.train.loss) && std::isnan(score.train.accuracy) &&
              std::isnan(score.train.loss_error));
}

TEST(StateVector, RefusesAnotherNetworksCheckpoint) {
  const auto model = tiny_mlp();
  Checkpoint checkpoint;
  checkpoint.parameters = tiny_mlp(2)->parameter_table();
  const StateVector states(*model);
  EXPECT_EQ(states.of(checkpoint, "a.h5").numel(), 143);
  checkpoint.parameters[1].tensor = at::zeros({9});
  try {
    states.of(checkpoint, "a.h5");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("a.h5: another network"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(checkpoint.parameters[1].name));
  }
}

}  // namespace
}  // namespace basin::testing
