#include "landscape/unit_matching.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "landscape/affine_frame.h"
#include "landscape/connectivity.h"
#include "landscape/point_evaluator.h"
#include "landscape/state_vector.h"
#include "models/symmetries.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

// Two networks of every model with groups but airbench, whose norms are fixed; wide enough that two units are never alike.
std::vector<std::shared_ptr<Model>> models(const std::string& norm, at::ScalarType dtype, uint64_t seed = 1) {
  const InputShape shape = testing::tiny_image_shape();
  const std::string with_norm = "norm=" + norm;
  return {testing::make_test_model("mlp", {"hidden=[12, 9, 7]", with_norm}, shape, seed, dtype),
          testing::make_test_model("small_cnn", {"widths=[8, 12]", with_norm}, shape, seed, dtype),
          testing::make_test_model("keskar_c1", {"width=8", "hidden=[10, 6]", with_norm}, shape, seed, dtype),
          testing::make_test_model("resnet20", {"width=6", "blocks=1", with_norm}, shape, seed, dtype),
          testing::make_test_model("davidnet", {"width=4", with_norm}, shape, seed, dtype)};
}

/// Weights, biases, norms and statistics all of their own, as after training.
at::Tensor scattered_state(Model& model, uint64_t seed) {
  const StateVector states(model);
  at::Generator generator = make_generator(seed);
  const at::Tensor state = states.gather();
  state.add_(at::rand(state.sizes(), generator, at::kDouble), 0.1);
  states.scatter(state, true);
  return states.gather();
}

at::Tensor shuffled_state(Model& model, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  for (const UnitGroup& group : model.unit_groups())
    apply_symmetry(unit_permutation(group, at::randperm(group.units, generator, at::kLong)),
                   named_tensors(model));
  return StateVector(model).gather();
}

TEST(UnitMatching, FindsAPermutedTwinBitForBit) {
  for (const char* norm : {"none", "batch"}) {
    for (const auto& model : models(norm, at::kFloat)) {
      const at::Tensor fixed = scattered_state(*model, 5);
      const at::Tensor twin = shuffled_state(*model, 6);
      ASSERT_FALSE(at::equal(twin, fixed));
      const UnitMatching found = match_units(*model, fixed, twin, 1);
      EXPECT_TRUE(at::equal(found.state, fixed)) << norm << ", " << found.groups.front();
      EXPECT_TRUE(found.converged);
      EXPECT_GT(found.distance_before, 0);
      EXPECT_EQ(found.distance_after, 0);
      EXPECT_TRUE(at::equal(StateVector(*model).gather(), twin)) << "the model was moved";
    }
  }
}

TEST(UnitMatching, LeavesNoBarrierToATwin) {
  const auto model = testing::make_test_model("small_cnn", {"widths=[8, 12]", "norm=batch"},
                                              testing::tiny_image_shape(), 1, at::kFloat);
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_image_shape(), 40, 1, at::kFloat);
  scattered_state(*model, 5);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 40);
  for (int i = 0; i < 300; ++i) {  // to a low loss, so that leaving it costs something
    const at::Tensor step = 0.1 * objective.gradient();
    objective.parameters().scatter(objective.parameters().gather() - step);
  }
  const at::Tensor fixed = StateVector(*model).gather();
  const at::Tensor twin = shuffled_state(*model, 6);
  PointEvaluator evaluator({&objective, batch.labels}, {}, {.statistics = StatisticsMode::interpolate});
  const auto barrier_to = [&](const at::Tensor& end) {
    AffineFrame line(fixed, evaluator.states().parameter_size());
    line.add_point(end);
    std::vector<double> t, losses;
    for (int i = 0; i < 25; ++i) {
      t.push_back(i / 24.0);
      losses.push_back(evaluator.at(line.at({t.back()})).train.loss);
    }
    return highest_excess(t, losses).value;
  };
  EXPECT_GT(barrier_to(twin), 0.01);
  // All points of the line are the one network but for the last bit of w (1 - t) + w t in float64, which
  // rounding to float32 takes off; the chord has the rounding of three products in float64.
  EXPECT_NEAR(barrier_to(match_units(*model, fixed, twin, 1).state), 0, 1e-15);
}

TEST(UnitMatching, IsTheBestOrderOfOneHiddenLayer) {
  const auto model = testing::make_test_model("mlp", {"hidden=[5]"}, testing::tiny_shape());
  const auto other = testing::make_test_model("mlp", {"hidden=[5]"}, testing::tiny_shape(), 2);
  const at::Tensor fixed = scattered_state(*model, 5), moved = scattered_state(*other, 6);
  const UnitMatching found = match_units(*model, fixed, moved, 1);
  const StateVector states(*model);
  std::vector<int64_t> order{0, 1, 2, 3, 4};
  double nearest = std::numeric_limits<double>::infinity();
  do {
    states.scatter(moved, true);
    apply_symmetry(unit_permutation(model->unit_groups().front(), at::tensor(order, at::kLong)),
                   named_tensors(*model));
    nearest = std::min(nearest, (states.gather() - fixed).norm().item<double>());
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(found.distance_after, nearest, 1e-12);  // a root of a sum of 63 squares
  EXPECT_LT(found.distance_after, 0.99 * found.distance_before);
  EXPECT_NEAR((found.state - fixed).norm().item<double>(), found.distance_after, 1e-12);
}

TEST(UnitMatching, KeepsTheFunctionAndComesNearer) {
  const at::NoGradGuard no_grad;
  const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_image_shape(), 5);
  const auto ones = models("batch", at::kDouble), others = models("batch", at::kDouble, 2);
  for (size_t i = 0; i < ones.size(); ++i) {
    Model &model = *ones[i], &other = *others[i];
    const at::Tensor fixed = scattered_state(model, 5), moved = scattered_state(other, 6);
    const UnitMatching found = match_units(model, fixed, moved, 1);
    StateVector(model).scatter(found.state, true);
    model.eval();
    other.eval();
    // Sums over units in another order, in float64.
    EXPECT_TRUE(at::allclose(model.forward(batch.images), other.forward(batch.images), 1e-10, 1e-10))
        << found.groups.front();
    EXPECT_LT(found.distance_after, 0.999 * found.distance_before) << found.groups.front();
    EXPECT_TRUE(at::equal(match_units(model, fixed, moved, 1).state, found.state)) << "not the seed's alone";
  }
}

TEST(UnitMatching, NeedsUnits) {
  testing::LinearModel model(testing::sine_numbers({3, 4}));
  const at::Tensor state = StateVector(model).gather();
  EXPECT_THROW(match_units(model, state, state, 1), ConfigError);
}

}  // namespace
}  // namespace basin
