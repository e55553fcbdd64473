// The update of a logical batch does not depend on how it is computed: acceptance 4 of the first issue.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "models/layers.h"
#include "models/loss.h"
#include "optim/registry.h"
#include "tests/support/does_not_apply.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin::testing {
namespace {

// Rounding of float64 sums in another order: five updates amplify 1e-16 by far less than 1e4.
constexpr double kRounding = 1e-12;

RunSettings accumulation_settings(const std::string& optimizer, int64_t micro_batch,
                                  const std::string& duplicates) {
  RunSettings s = small_settings();
  s.model = "small_cnn";
  s.model_settings = {"widths=[3, 4, 5]", "downsample=stride"};
  s.optimizer = optimizer;
  s.train.batch_size = 512;
  s.train.micro_batch = micro_batch;
  s.train.duplicates = duplicates;
  s.train.learning_rate = 0.1;
  return s;
}

class MicroBatch : public ::testing::TestWithParam<std::string> {};

TEST_P(MicroBatch, FiveUpdatesAgreeForEverySizeAndBothKindsOfDuplicates) {
  RunSettings s = accumulation_settings(GetParam(), 160, "repeated");
  s.train.batch_size = 160;
  s.data.train_examples = 60;  // a batch has each of them two or three times
  s.train.learning_rate = rate_of_first_move(s, 0.01);
  // With overlap (L-BFGS) steps go by differences of gradients that are far smaller than these.
  const double rounding = has_overlap(GetParam()) ? 1e-9 : kRounding;
  const auto& entry = find_entry(optimizer_registry(), GetParam(), "optimizer");
  if (entry.traits(*entry.make_options()).magnifies_rounding)
    DOES_NOT_APPLY() << "rounding decides the basis of a matrix with more rows than there were gradients";
  TestRun reference(s);
  const at::Tensor start = reference.weights();
  ASSERT_EQ(reference.run().status, RunState::finished);
  ASSERT_GT(relative_difference(reference.weights(), start), 1e-3) << "nothing was trained";
  for (const char* duplicates : {"weighted", "repeated"}) {
    for (const int64_t micro_batch : {16, 50, 160}) {
      s.train.duplicates = duplicates;
      s.train.micro_batch = micro_batch;
      TestRun run(s);
      run.run();
      EXPECT_LE(relative_difference(run.weights(), reference.weights()), rounding)
          << duplicates << ' ' << micro_batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, MicroBatch, ::testing::ValuesIn(names_of(optimizer_registry())),
                         [](const auto& info) { return info.param; });

TEST(BatchGradientTest, IsTheMeanOverTheBatchWithDuplicates) {
  RunSettings s = accumulation_settings("sgd", 64, "weighted");
  s.train.batch_size = 300;
  s.train.updates = 1;
  s.train.learning_rate = 1;
  s.optimizer_settings = {"momentum=0"};
  TestRun run(s), plain(s);
  const at::Tensor before = run.weights();
  run.run();
  // With rate 1 and no momentum the change is minus the gradient. By hand: one pass over all 300 examples as
  // they come.
  const Batch batch = ExampleStream(1, 200).slice(0, 300, false);
  const at::Tensor index = at::tensor(batch.examples, at::kLong);
  const at::Tensor inputs = network_inputs(plain.data, plain.data.train, index, at::kDouble, at::kCPU);
  plain.model->eval();
  const at::Tensor probabilities = at::log_softmax(plain.model->forward(inputs), 1);
  const at::Tensor loss =
      -probabilities.gather(1, plain.data.train.labels.index_select(0, index).unsqueeze(1)).mean();
  loss.backward();
  std::vector<at::Tensor> gradient;
  for (const auto& p : plain.model->parameter_table()) gradient.push_back(p.tensor.grad().reshape({-1}));
  EXPECT_LE(relative_difference(before - run.weights(), at::cat(gradient)), kRounding);
  EXPECT_NEAR(run.listener.updates.at(0).loss, loss.item<double>(), 1e-12);
  EXPECT_NEAR(run.listener.updates.at(0).gradient_norm, at::cat(gradient).norm().item<double>(), 1e-12);
}

TEST(BatchGradientTest, CountsDistinctExamplesWhenDuplicatesAreMerged) {
  RunSettings s = small_settings();
  s.train.batch_size = 300;
  s.train.updates = 4;
  TestRun run(s);
  run.run();
  ExampleStream stream(1, 200);
  int64_t gradients = 0;
  for (size_t t = 0; t < 4; ++t) {
    const Batch batch = stream.slice(static_cast<int64_t>(t) * 300, 300, false);
    gradients += static_cast<int64_t>(std::set<int64_t>(batch.examples.begin(), batch.examples.end()).size());
    EXPECT_EQ(run.listener.updates.at(t).gradients, gradients);
    EXPECT_EQ(run.listener.updates.at(t).examples, static_cast<int64_t>(t + 1) * 300);
  }
}

RunSettings ghost_settings(int64_t micro_batch) {
  RunSettings s = small_settings();
  s.model_settings = {"hidden=[8]", "norm=batch"};
  s.train.batch_size = 96;
  s.train.ghost_batch = 16;
  s.train.micro_batch = micro_batch;
  return s;
}

TEST(GhostBatchTest, MicroBatchDoesNotChangeWhatNormalisationSees) {
  TestRun whole(ghost_settings(96));
  const TrainResult expected = whole.run();
  for (const int64_t micro_batch : {16, 48}) {
    TestRun run(ghost_settings(micro_batch));
    const TrainResult result = run.run();
    EXPECT_LE(relative_difference(run.weights(), whole.weights()), kRounding) << micro_batch;
    EXPECT_NEAR(number(result, "test_loss"), number(expected, "test_loss"), 1e-12);
  }
  RunSettings other = ghost_settings(96);
  other.train.ghost_batch = 32;
  TestRun larger(other);
  larger.run();
  EXPECT_GT(relative_difference(larger.weights(), whole.weights()), 1e-6) << "ghost_batch has no effect";
}

TEST(GhostBatchTest, RefusesMicroBatchesThatCutGhostBatches) {
  try {
    TestRun run(ghost_settings(24));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "micro_batch = 24 must be a multiple of ghost_batch (16) with batch statistics");
  }
}

TEST(AugmentationTest, MicroBatchDoesNotChangeTheDraws) {
  RunSettings s = accumulation_settings("sgd", 512, "weighted");
  s.data.augmentation = "crop_flip";
  TestRun whole(s);
  whole.run();
  s.train.micro_batch = 32;
  TestRun small(s);
  small.run();
  EXPECT_LE(relative_difference(small.weights(), whole.weights()), kRounding);
  EXPECT_EQ(small.listener.updates.back().gradients, 5 * 512) << "augmented duplicates are different images";
}

TEST(DropoutTest, MicroBatchDoesNotChangeTheMasks) {
  RunSettings s = small_settings();
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=none", "dropout=0.5"};
  s.train.updates = 2;
  s.data.train_examples = 60;  // a batch has each of them two or three times
  s.train.batch_size = 160;
  s.train.micro_batch = 160;
  TestRun whole(s);
  const at::Tensor start = whole.weights();
  whole.run();
  ASSERT_GT(relative_difference(whole.weights(), start), 1e-3) << "nothing was trained";
  for (const int64_t micro_batch : {32, 100}) {
    s.train.micro_batch = micro_batch;
    TestRun cut(s);
    cut.run();
    EXPECT_LE(relative_difference(cut.weights(), whole.weights()), kRounding) << micro_batch;
  }
}

// Keeps the masks of its forward passes.
struct MaskKeeper : Model {
  explicit MaskKeeper(at::Generator init = make_generator(1))
      : fc(Builder{*this, init}, "fc", 3072, 10), dropout(Builder{*this, init}, 0.5) {
    seed_dropout(1);
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor x = images.flatten(1), kept = dropout(at::ones_like(x));
    masks.push_back(kept.ne(0));
    return fc(x * kept);
  }
  Linear fc;
  Dropout dropout;
  std::vector<at::Tensor> masks;
};

// The masks of an update's batch of 48 examples, in the groups and passes that a perturbation makes.
std::vector<at::Tensor> masks_of(int64_t update, int64_t micro_batch,
                                 const PerturbationOptions& perturbation) {
  RunSettings s = small_settings();
  s.train.batch_size = 48;
  s.train.micro_batch = micro_batch;
  s.train.hook<PerturbationOptions>() = perturbation;
  const Dataset data = load_dataset(s.data);
  const auto model = std::make_shared<MaskKeeper>();
  const BatchPlan plan = plan_batches(s.train, s.data, model->has_dropout(), false, 0);
  BatchGradient gradient(model, data, s.data, s.train, plan, at::kDouble, at::kCPU, {});
  std::optional<PerturbedGradient> rule;
  if (perturbation.on()) gradient.add_rule(*rule.emplace(perturbation, *model, gradient).gradient_rule());
  ExampleStream stream(1, data.train.size());
  gradient.compute(batch_groups(stream, update * 48, 48, plan), {update, update * 48});
  return model->masks;
}

TEST(DropoutTest, MasksAreThoseOfTheirPlaceToTheBit) {
  const at::Tensor whole = at::cat(masks_of(5, 48, {}));
  ASSERT_EQ(whole.size(0), 48);
  for (const int64_t micro_batch : {1, 7, 16})
    EXPECT_TRUE(at::equal(at::cat(masks_of(5, micro_batch, {})), whole)) << micro_batch;
  EXPECT_FALSE(at::equal(at::cat(masks_of(6, 48, {})), whole));
}

TEST(DropoutTest, BothPassesOfAPerturbationSeeTheSameMasks) {
  const at::Tensor whole = at::cat(masks_of(5, 48, {}));
  const std::vector<at::Tensor> masks = masks_of(5, 8, {.kind = "sam", .examples = 16});
  ASSERT_EQ(masks.size(), 12U);  // three groups, two passes of two micro-batches
  for (size_t group = 0; group < 3; ++group) {
    for (const size_t pass : {4 * group, 4 * group + 2}) {
      EXPECT_TRUE(at::equal(at::cat({masks[pass], masks[pass + 1]}),
                            whole.narrow(0, static_cast<int64_t>(group) * 16, 16)));
    }
  }
}

}  // namespace
}  // namespace basin::testing
