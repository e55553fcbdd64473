// What a run does with [perturbation]: groups, passes, masks, counts; the mathematics is tested in
// tests/optim.
#include <gtest/gtest.h>

#include "core/error.h"
#include "optim/registry.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin::testing {
namespace {

// Rounding of float64 sums in another order; the penalty divides a difference of gradients by h = 0.01.
constexpr double kRounding = 1e-11;

RunSettings perturbed(const std::string& kind, int64_t examples = 0) {
  RunSettings s = small_settings();
  s.train.hook<PerturbationOptions>().kind = kind;
  s.train.hook<PerturbationOptions>().rho = 0.3;
  s.train.hook<PerturbationOptions>().examples = examples;
  return s;
}

at::Tensor trained(const RunSettings& s) {
  TestRun run(s);
  EXPECT_EQ(run.run().status, RunState::finished);
  return run.weights();
}

void move(TestRun& run, const std::vector<at::Tensor>& direction, double factor) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < direction.size(); ++i)
    run.model->parameter_table()[i].tensor.add_(direction[i], factor);
}

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}));
  return at::cat(parts);
}

// 300 of 200 examples in groups of 120: the second group holds parts of two epochs, the last one is short.
TEST(SamGroups, AreTheMeanOfTheirOwnGradients) {
  RunSettings s = perturbed("sam", 120);
  s.train.batch_size = 300;
  s.train.updates = 1;
  s.train.learning_rate = 1;
  s.optimizer_settings = {"momentum=0"};
  TestRun run(s), by_hand(s);
  const at::Tensor before = run.weights();
  run.run();
  at::Tensor mean = at::zeros_like(before);
  for (const auto& [start, count] : {std::pair{0, 120}, {120, 120}, {240, 60}}) {
    const std::vector<at::Tensor> g = plain_gradient(by_hand, start, count);
    const double step = 0.3 / flat(g).norm().item<double>();
    move(by_hand, g, step);
    mean += flat(plain_gradient(by_hand, start, count)) * (count / 300.0);
    move(by_hand, g, -step);
  }
  EXPECT_LE(relative_difference(before - run.weights(), mean), kRounding);
  EXPECT_NEAR(run.listener.updates.at(0).gradient_norm, mean.norm().item<double>(), 1e-12);
}

class Kinds : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Perturbations, Kinds, ::testing::Values("sam", "asam", "gradient_penalty"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Kinds, OneGroupIsTheWholeBatch) {
  const at::Tensor whole = trained(perturbed(GetParam()));
  EXPECT_TRUE(trained(perturbed(GetParam(), 50)).equal(whole));
  EXPECT_TRUE(trained(perturbed(GetParam(), 70)).equal(whole));
  EXPECT_GT(relative_difference(trained(perturbed(GetParam(), 10)), whole), 1e-6)
      << "the size of groups has no effect";
  EXPECT_GT(relative_difference(trained(small_settings()), whole), 1e-4) << "the perturbation has no effect";
}

TEST_P(Kinds, MicroBatchAndDuplicatesChangeRoundingAlone) {
  RunSettings s = perturbed(GetParam(), 150);
  s.train.batch_size = 420;
  s.train.micro_batch = 420;
  const at::Tensor whole = trained(s);
  for (const char* duplicates : {"weighted", "repeated"}) {
    for (const int64_t micro_batch : {7, 64, 420}) {
      s.train.duplicates = duplicates;
      s.train.micro_batch = micro_batch;
      EXPECT_LE(relative_difference(trained(s), whole), kRounding) << duplicates << ' ' << micro_batch;
    }
  }
}

TEST_P(Kinds, MicroBatchChangesRoundingAloneWithNormsDropoutAndAugmentation) {
  RunSettings s = perturbed(GetParam(), 48);
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  s.data.augmentation = "crop_flip";
  s.train.updates = 2;
  s.train.batch_size = 96;
  s.train.ghost_batch = 16;
  s.train.micro_batch = 96;
  const at::Tensor whole = trained(s);
  for (const int64_t micro_batch : {16, 32}) {
    s.train.micro_batch = micro_batch;
    EXPECT_LE(relative_difference(trained(s), whole), 100 * kRounding) << micro_batch;  // norms divide
  }
}

// Without a displacement the second pass must see what the first saw, masks included.
TEST(SecondPass, SeesTheSameMasksAndGhostBatches) {
  RunSettings s = perturbed("sam", 32);
  s.model = "keskar_c1";
  s.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  s.train.updates = 3;
  s.train.batch_size = 64;
  s.train.ghost_batch = 16;
  s.train.hook<PerturbationOptions>().rho = 0;
  const at::Tensor twice = trained(s);
  s.train.hook<PerturbationOptions>().kind = "none";
  TestRun once(s), start(s);
  once.run();
  ASSERT_GT(relative_difference(once.weights(), start.weights()), 1e-3) << "nothing was trained";
  EXPECT_LE(relative_difference(twice, once.weights()), kRounding);  // sums by groups
  s.train.hook<PerturbationOptions>() = {.kind = "gradient_penalty", .strength = 0};
  EXPECT_TRUE(trained(s).equal(once.weights()));
}

TEST(Records, AreOfTheUnperturbedWeightsAndOfTwoGradientsAnExample) {
  TestRun plain(small_settings()), sam(perturbed("sam", 20));
  plain.run();
  sam.run();
  EXPECT_NEAR(sam.listener.updates.at(0).loss, plain.listener.updates.at(0).loss, 1e-14);
  EXPECT_EQ(sam.listener.updates.at(0).weight_norm, plain.listener.updates.at(0).weight_norm);
  for (size_t t = 0; t < 5; ++t) {
    EXPECT_EQ(sam.listener.updates.at(t).gradients, 2 * plain.listener.updates.at(t).gradients);
    EXPECT_EQ(sam.listener.updates.at(t).examples, plain.listener.updates.at(t).examples);
  }
}

// The cap of protocol B is in gradients computed: half the updates, and duplicates are merged within groups.
TEST(ProtocolB, CountsBothGradientsAgainstTheCap) {
  for (const int64_t examples : {int64_t{0}, int64_t{130}}) {
    RunSettings s = perturbed("sam", examples);
    s.train.protocol = "B";
    s.train.target_loss = 1e-9;
    s.train.batch_size = 300;
    s.train.max_gradients = 1990;
    s.train.check_every = 100000;
    TestRun run(s);
    const TrainResult result = run.run();
    EXPECT_EQ(result.status, RunState::target_not_reached);
    ExampleStream stream(1, 200);
    int64_t gradients = 0, updates = 0;
    while (gradients < 1990) {
      for (int64_t first = 0; first < 300; first += examples == 0 ? 300 : examples) {
        const int64_t last = examples == 0 ? 300 : std::min<int64_t>(300, first + examples);
        const Batch group = stream.slice(updates * 300 + first, last - first, false);
        gradients += 2 * static_cast<int64_t>(std::set(group.examples.begin(), group.examples.end()).size());
      }
      ++updates;
    }
    EXPECT_EQ(number(result, "updates"), updates) << examples;
    EXPECT_EQ(number(result, "gradients"), gradients) << examples;
  }
}

TEST(SamGroups, AreRefusedWhereTheyCutGhostBatches) {
  RunSettings s = perturbed("sam", 24);
  s.model_settings = {"hidden=[8]", "norm=batch"};
  s.train.batch_size = 96;
  s.train.ghost_batch = 16;
  try {
    TestRun run(s);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "perturbation.examples = 24 must be a multiple of ghost_batch (16) with batch statistics");
  }
  s.train.hook<PerturbationOptions>().examples = 100;  // all of the batch
  EXPECT_NO_THROW(TestRun{s});
  s.train.hook<PerturbationOptions>().kind = "none";
  s.train.hook<PerturbationOptions>().examples = 24;
  EXPECT_NO_THROW(TestRun{s});
}

struct Pairing {
  std::string optimizer, kind;
};
void PrintTo(const Pairing& p, std::ostream* out) { *out << p.optimizer << ' ' << p.kind; }

std::vector<Pairing> pairings() {
  std::vector<Pairing> all;
  for (const OptimizerEntry& entry : optimizer_registry()) {
    if (entry.traits(*entry.make_options()).overlap > 0) continue;  // refused: tests/optim
    for (const char* kind : {"sam", "asam", "gradient_penalty"}) all.push_back({entry.name, kind});
  }
  return all;
}

/// Every registered optimiser, but those with overlap, with every perturbation.
class PerturbationContract : public ::testing::TestWithParam<Pairing> {};
INSTANTIATE_TEST_SUITE_P(Registry, PerturbationContract, ::testing::ValuesIn(pairings()),
                         [](const auto& info) { return info.param.optimizer + "_" + info.param.kind; });

TEST_P(PerturbationContract, TrainsAndGoesOnWithTheSameBits) {
  RunSettings s = perturbed(GetParam().kind, 25);
  s.optimizer = GetParam().optimizer;
  s.train.learning_rate = 0.01;
  s.train.dtype = "float32";
  TestRun undisturbed(s), first(s), second(s), start(s);
  EXPECT_EQ(undisturbed.run().status, RunState::finished);
  EXPECT_GT(relative_difference(undisturbed.weights(), start.weights()), 0);
  EXPECT_TRUE(undisturbed.weights().isfinite().all().item<bool>());
  first.run_until(2);
  second.trainer->restore(first.listener.checkpoints.at("latest"));
  second.run();
  EXPECT_TRUE(second.weights().equal(undisturbed.weights()));
  s.train.hook<PerturbationOptions>().kind = "none";
  EXPECT_GT(relative_difference(trained(s), undisturbed.weights()), 0) << "the perturbation has no effect";
}

}  // namespace
}  // namespace basin::testing
