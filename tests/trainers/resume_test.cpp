// Interrupt, save, restore, go on: the same bits as an undisturbed run.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "tests/support/script_nets.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/lookahead.h"
#include "trainers/hooks/perturbed_gradient.h"
#include "trainers/hooks/weight_average.h"

namespace basin::testing {
namespace {

struct ResumeCase {
  std::string name;
  RunSettings settings;
};

std::ostream& operator<<(std::ostream& out, const ResumeCase& c) { return out << c.name; }

std::vector<ResumeCase> cases() {
  RunSettings plain = small_settings();
  plain.train.updates = 9;
  plain.train.dtype = "float32";
  RunSettings lamb = plain;
  lamb.optimizer = "lamb";
  lamb.schedule.schedule = "cosine";
  lamb.train.checkpoint_every = 3;
  lamb.train.evaluate_every = 100;
  RunSettings noisy = plain;  // masks that go by the update
  noisy.model = "keskar_c1";
  noisy.model_settings = {"width=4", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  noisy.train.updates = 3;
  noisy.train.batch_size = 24;
  noisy.train.micro_batch = 12;
  noisy.train.ghost_batch = 12;
  noisy.data.train_examples = 60;
  noisy.data.augmentation = "crop_flip";
  RunSettings matched = plain;
  matched.train.protocol = "B";
  matched.train.target_loss = 1.2;
  matched.train.loss_levels = {2.0, 1.6};
  matched.train.check_every = 100;
  matched.train.max_gradients = 4000;
  RunSettings perturbed = noisy;  // the same masks twice
  perturbed.train.hook<PerturbationOptions>() = {.kind = "asam", .rho = 0.5, .examples = 12};
  perturbed.train.hook<GradientClippingOptions>().limit = 0.5;
  perturbed.train.label_smoothing = 0.1;
  perturbed.train.hook<WeightAverageOptions>().decay = 0.9;
  RunSettings lookahead = plain;  // no stop but the first is at a synchronisation
  lookahead.train.updates = 8;
  lookahead.train.hook<LookaheadOptions>().every = 3;
  lookahead.train.hook<LookaheadOptions>().schedule = "cubic";
  lookahead.optimizer_settings = {"momentum=0.9"};
  RunSettings growing = plain;
  growing.train.batch_milestones = {0.25, 0.75};
  growing.train.batch_factor = 2;
  RunSettings prepared = plain;  // a start from images, and flips that go by the epoch
  prepared.model = "airbench";
  prepared.model_settings = {"widths=[4, 4]", "groups=1"};
  prepared.train.updates = 9;  // two epochs
  prepared.data.augmentation = "crop_flip";
  prepared.data.flip = "alternating";
  prepared.data.padding_mode = "reflect";
  prepared.data.cutout = 6;
  RunSettings clean = lamb;  // a moment of its own without noise
  clean.train.hook<ExampleNoiseOptions>() = {.batch = 5, .preconditioner = "clean"};
  RunSettings rounded = noisy;
  rounded.train.autocast = "bfloat16";
  RunSettings script = noisy;
  script.model = "torchscript";
  script.model_settings = {};  // its file is written for the test
  return {{"prepared", prepared},   {"bfloat16", rounded},       {"sgd", plain},
          {"lamb", lamb},           {"lamb_noise_clean", clean}, {"dropout_batchnorm_augmentation", noisy},
          {"protocol_b", matched},  {"perturbed", perturbed},    {"growing", growing},
          {"lookahead", lookahead}, {"script", script}};
}

/// Batch norm, whose statistics a script keeps, and dropout, which draws from torch's own generator.
void write_network(const std::string& path) {
  at::Generator generator = make_generator(4);
  const at::Tensor weight = at::empty({10, 3 * 32 * 32}, at::kFloat).normal_(0, 0.01, generator);
  write_script(path,
               "h = torch.dropout(torch.flatten(self.norm.forward(x), 1), 0.5, self.training)\n"
               "  return torch.matmul(h, self.w.t())",
               {{"w", at::Tensor(weight).requires_grad_()}}, {{"norm", batch_norm_script(3, 0.1)}});
}

class Resume : public ::testing::TestWithParam<ResumeCase> {
 protected:
  RunSettings settings() {
    RunSettings s = GetParam().settings;
    if (s.model != "torchscript") return s;
    write_network(folder_ / "net.pt");
    s.model_settings = {"file=" + (folder_ / "net.pt")};
    return s;
  }
  TemporaryFolder folder_;
};

void expect_same_records(const Listener& undisturbed, const Listener& first, const Listener& second) {
  std::vector<UpdateRecord> updates = first.updates;
  updates.insert(updates.end(), second.updates.begin(), second.updates.end());
  ASSERT_EQ(updates.size(), undisturbed.updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    const UpdateRecord &a = updates[i], &b = undisturbed.updates[i];
    EXPECT_EQ(a.update, b.update);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.learning_rate, b.learning_rate);
    EXPECT_EQ(a.gradient_norm, b.gradient_norm);
    EXPECT_EQ(a.update_norm, b.update_norm);
    EXPECT_EQ(a.weight_norm, b.weight_norm);
    EXPECT_EQ(a.distance_from_start, b.distance_from_start);
    EXPECT_EQ(a.gradients, b.gradients);
    EXPECT_EQ(a.batch_size, b.batch_size);
    EXPECT_EQ(a.hook_values, b.hook_values);
  }
  std::vector<std::vector<ParameterStep>> steps = first.steps;
  steps.insert(steps.end(), second.steps.begin(), second.steps.end());
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t p = 0; p < steps[i].size(); ++p) {
      EXPECT_EQ(steps[i][p].update_norm, undisturbed.steps[i][p].update_norm);
      EXPECT_EQ(fmt::format("{}", steps[i][p].trust_ratio),
                fmt::format("{}", undisturbed.steps[i][p].trust_ratio));
    }
  }
  std::vector<EvaluationRecord> evaluations = first.evaluations;
  evaluations.insert(evaluations.end(), second.evaluations.begin(), second.evaluations.end());
  ASSERT_EQ(evaluations.size(), undisturbed.evaluations.size());
  for (size_t i = 0; i < evaluations.size(); ++i) {
    EXPECT_EQ(evaluations[i].update, undisturbed.evaluations[i].update);
    EXPECT_EQ(evaluations[i].train_loss, undisturbed.evaluations[i].train_loss);
  }
}

TEST_P(Resume, GivesTheSameBits) {
  const RunSettings given = settings();
  TestRun undisturbed(given);
  const TrainResult expected = undisturbed.run();
  const int64_t total = static_cast<int64_t>(number(expected, "updates"));
  ASSERT_GE(total, 3);
  for (const int64_t stop : {int64_t{0}, int64_t{1}, total / 2, total - 1}) {
    SCOPED_TRACE(stop);
    TestRun first(given), second(given);
    ASSERT_EQ(first.run_until(stop).status, RunState::interrupted);
    second.trainer->restore(first.listener.checkpoints.at("latest"));
    const TrainResult result = second.run();
    EXPECT_EQ(result.status, expected.status);
    EXPECT_TRUE(second.weights().equal(undisturbed.weights()));
    for (const char* key : {"updates", "gradients", "train_loss", "test_loss", "test_acc", "overshot"}) {
      EXPECT_EQ(number(result, key), number(expected, key)) << key;
    }
    expect_same_records(undisturbed.listener, first.listener, second.listener);
    if (given.train.hook<WeightAverageOptions>().decay == 0) continue;
    for (const char* key : {"average_train_loss", "average_test_loss"})
      EXPECT_EQ(number(result, key), number(expected, key)) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Resume, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(RestoreTest, RefusesAnotherModelsCheckpoint) {
  RunSettings s = small_settings();
  TestRun run(s);
  run.run();
  s.model_settings = {"hidden=[7]"};
  TestRun other(s);
  EXPECT_THROW(other.trainer->restore(run.listener.checkpoints.at("end")), IoError);
}

// As versions wrote it whose masks came from a generator a layer.
TEST(RestoreTest, RefusesACheckpointWithGeneratorsOfMasks) {
  RunSettings s = small_settings();
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[4, 3]"};
  s.train.updates = 1;
  s.train.batch_size = 8;
  TestRun run(s), other(s);
  run.run();
  Checkpoint checkpoint = run.listener.checkpoints.at("end");
  EXPECT_TRUE(checkpoint.generators.empty());
  other.trainer->restore(checkpoint);
  checkpoint.generators = {{"dropout1", at::zeros({5056}, at::kByte)}};
  try {
    other.trainer->restore(checkpoint);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(),
                 "checkpoint: /generators/dropout1: its dropout masks came from a generator that no longer "
                 "exists; the run "
                 "can be probed, but not resumed: remove its folder to train it again");
  }
}

}  // namespace
}  // namespace basin::testing
