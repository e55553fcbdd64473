// The noise of a smaller batch in a run: its gradient against single gradients by autograd, what doesn't change it, controls,
// what is matched, what is refused.
#include "trainers/hooks/example_noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "data/network_inputs.h"
#include "models/layers.h"
#include "optim/perturbation.h"
#include "tests/support/message_of.h"
#include "tests/trainers/hooks/noise_options.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/noise_gauge.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

// Sums of some hundred float64 numbers in another order.
constexpr double kRounding = 1e-12;

/// One update of rate 1 without momentum: the weights change by minus the gradient.
RunSettings one_gradient(int64_t batch_size, int64_t b) {
  RunSettings s = small_settings();
  s.train.updates = 1;
  s.train.batch_size = batch_size;
  s.train.micro_batch = 16;
  s.train.learning_rate = 1;
  s.optimizer_settings = {"momentum=0"};
  noise_of(s).batch = b;
  return s;
}

at::Tensor gradient_of(TestRun& run) {
  const at::Tensor before = run.weights();
  run.run();
  return before - run.weights();
}

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}));
  return at::cat(parts);
}

/// n_eff and m from the counts alone.
double strength_by_hand(const std::vector<int64_t>& counts, double b) {
  double size = 0, squares = 0;
  for (const int64_t k : counts) {
    size += static_cast<double>(k);
    squares += static_cast<double>(k * k);
  }
  const double m = static_cast<double>(counts.size());
  return std::sqrt(m * m / (m - 1) * (1 / b - squares / (size * size)));
}

// 300 draws of 200 examples: 100 of them come up twice. All gradients from autograd, one example after another.
TEST(ExampleNoise, IsTheWeightedSumOfSingleGradients) {
  for (const char* duplicates : {"weighted", "repeated"}) {
    for (const char* distribution : {"gaussian", "rademacher"}) {
      RunSettings s = one_gradient(300, 20);
      s.train.duplicates = duplicates;
      noise_of(s).distribution = distribution;
      TestRun run(s), fresh(s);
      const Batch batch = ExampleStream(1, 200).slice(0, 300, true);
      const NoiseDraws draws(1, "example-noise", std::string(distribution) == "rademacher");
      double mean_xi = 0;
      for (const int64_t example : batch.examples)
        mean_xi += draws.at(0, example) / static_cast<double>(batch.examples.size());
      const double strength = strength_by_hand(batch.counts, 20);
      at::Tensor expected = at::zeros_like(run.weights()), mean = expected.clone();
      for (size_t x = 0; x < batch.examples.size(); ++x) {
        const at::Tensor g = flat(plain_gradient(fresh, batch.positions[x], 1));
        const double share = static_cast<double>(batch.counts[x]) / 300;
        const double xi = draws.at(0, batch.examples[x]) - mean_xi;
        expected.add_(g, share + strength * xi / static_cast<double>(batch.counts.size()));
        mean.add_(g, share);
      }
      EXPECT_LE(relative_difference(gradient_of(run), expected), kRounding)
          << duplicates << ' ' << distribution;
      EXPECT_GT(relative_difference(mean, expected), 0.1) << "no noise to see";
      const UpdateRecord& update = run.listener.updates.at(0);
      ASSERT_EQ(update.hook_values.size(), 4U);
      EXPECT_EQ(update.hook_values[0], 20);
      EXPECT_NEAR(update.hook_values[1], strength, 1e-14);
      EXPECT_EQ(update.hook_values[2], 200);
      EXPECT_DOUBLE_EQ(update.hook_values[3], 90000.0 / 500);
    }
  }
}

// With a network's own gradients: the covariance over xi, exact because the gradient is linear in xi, against all subsets of 3 of 8.
TEST(ExampleNoise, HasTheCovarianceOfSmallBatchesGivenTheBatch) {
  constexpr int64_t kBatch = 8, kSmall = 3;
  TestRun run(one_gradient(kBatch, 0));
  std::vector<at::Tensor> singles;
  for (int64_t x = 0; x < kBatch; ++x) singles.push_back(flat(plain_gradient(run, x, 1)));
  const at::Tensor gradients = at::stack(singles);  // [8, weights]
  std::vector<at::Tensor> means;
  for (unsigned subset = 0; subset < (1U << kBatch); ++subset) {
    if (std::popcount(subset) != kSmall) continue;
    at::Tensor chosen = at::zeros({kBatch}, at::kDouble);
    for (int64_t x = 0; x < kBatch; ++x)
      if ((subset >> x & 1U) != 0) chosen[x] = 1.0 / kSmall;
    means.push_back(chosen.matmul(gradients));
  }
  const at::Tensor all = at::stack(means);
  const at::Tensor spread = (all - all.mean(0)) / std::sqrt(static_cast<double>(means.size()));
  const NoiseUnits units{std::vector<int64_t>(kBatch, 1)};
  const double s = noise_strength(units, kSmall);
  std::vector<at::Tensor> moved;
  for (size_t i = 0; i < kBatch; ++i) {
    std::vector<double> xi(kBatch, 0);
    xi[i] = 1;
    moved.push_back((at::tensor(noise_weights(units, xi, s), at::kDouble) - 1.0 / kBatch).matmul(gradients));
  }
  // Both covariances have rank 7 in the span of the 8 gradients: compared there, on the gradients themselves.
  const at::Tensor of_subsets = spread.matmul(gradients.t()),
                   of_noise = at::stack(moved).matmul(gradients.t());
  EXPECT_LE(relative_difference(of_noise.t().matmul(of_noise), of_subsets.t().matmul(of_subsets)), kRounding);
}

TEST(ExampleNoise, IsNothingWhereBIsTheBatch) {
  TestRun with(one_gradient(50, 50)), without(one_gradient(50, 0));
  EXPECT_LE(relative_difference(gradient_of(with), gradient_of(without)), kRounding);
  EXPECT_EQ(with.listener.updates.at(0).hook_values.at(1), 0);
}

TEST(ExampleNoise, LeavesTheRecordedLossPlain) {
  TestRun with(one_gradient(300, 10)), without(one_gradient(300, 0));
  with.run();
  without.run();
  EXPECT_EQ(with.listener.updates.at(0).loss, without.listener.updates.at(0).loss);
  EXPECT_FALSE(with.weights().equal(without.weights()));
}

TEST(ExampleNoise, DoesNotDependOnMicroBatchesOrOnHowDuplicatesAreComputed) {
  RunSettings s = one_gradient(300, 10);
  s.train.updates = 4;
  s.train.learning_rate = 0.05;
  s.train.micro_batch = 300;
  TestRun whole(s);
  whole.run();
  for (const char* duplicates : {"weighted", "repeated"}) {
    for (const int64_t micro_batch : {7, 64}) {
      s.train.duplicates = duplicates;
      s.train.micro_batch = micro_batch;
      TestRun parts(s);
      parts.run();
      EXPECT_LE(relative_difference(parts.weights(), whole.weights()), kRounding)
          << duplicates << micro_batch;
    }
  }
}

RunSettings with_ghosts(int64_t b) {
  RunSettings s = one_gradient(48, b);
  s.model_settings = {"hidden=[8]", "norm=batch"};
  s.train.ghost_batch = 8;
  return s;
}

TEST(ExampleNoise, IsOfGhostBatchesUnderBatchNorm) {
  const RunSettings s = with_ghosts(16);
  TestRun run(s), fresh(s);
  fresh.model->train();
  fresh.model->set_norm_mode(NormMode::ghost_batch, 8);
  const NoiseDraws draws(1, "example-noise", false);
  double mean_xi = 0;
  for (int64_t j = 0; j < 6; ++j) mean_xi += draws.at(0, j) / 6;
  const double strength = strength_by_hand(std::vector<int64_t>(6, 1), 16.0 / 8);
  at::Tensor expected = at::zeros_like(run.weights());
  for (int64_t j = 0; j < 6; ++j) {
    expected.add_(flat(plain_gradient(fresh, 8 * j, 8)), 1.0 / 6 + strength * (draws.at(0, j) - mean_xi) / 6);
  }
  EXPECT_LE(relative_difference(gradient_of(run), expected), kRounding);
  EXPECT_EQ(run.listener.updates.at(0).hook_values.at(2), 6);
  RunSettings cut = s;
  cut.train.micro_batch = 48;
  TestRun whole(cut);
  EXPECT_LE(relative_difference(gradient_of(whole), expected), kRounding);
}

/// Clean gradient, and the gradients with noise as it is and under the control, of one update.
struct Controlled {
  explicit Controlled(const std::string& control)
      : clean(one_gradient(60, 0)), plain(one_gradient(60, 6)), other([&] {
          RunSettings s = one_gradient(60, 6);
          noise_of(s).control = control;
          return s;
        }()) {
    const at::Tensor mean = gradient_of(clean);
    z = gradient_of(plain) - mean;
    changed = gradient_of(other) - mean;
  }
  TestRun clean, plain, other;
  at::Tensor z, changed;
};

TEST(ExampleNoise, ControlsHaveItsLengthAndSayIt) {
  for (const char* control : {"isotropic", "coordinate_signs", "layers_exchanged"}) {
    const Controlled c(control);
    const double length = c.z.norm().item<double>();
    // Differences of gradients of which the noise is a part.
    EXPECT_NEAR(c.changed.norm().item<double>(), length, 1e-12 * length) << control;
    EXPECT_GT(relative_difference(c.changed, c.z), 0.1) << control;
    const std::vector<double>& values = c.other.listener.updates.at(0).hook_values;
    ASSERT_EQ(values.size(), 6U);
    EXPECT_NEAR(values[4], length, 1e-12 * length);
    EXPECT_NEAR(values[5], length, 1e-12 * length);
    EXPECT_EQ(c.other.listener.updates.at(0).gradients, 2 * c.plain.listener.updates.at(0).gradients);
    EXPECT_EQ(c.other.listener.updates.at(0).loss, c.plain.listener.updates.at(0).loss);
  }
}

TEST(ExampleNoise, CoordinateSignsKeepEachSize) {
  const Controlled c("coordinate_signs");
  EXPECT_LE((c.changed.abs() - c.z.abs()).abs().max().item<double>(),
            1e-13 * c.z.abs().max().item<double>() + 1e-15);
  const double flipped = (c.changed * c.z < 0).sum().item<double>() / (c.z != 0).sum().item<double>();
  EXPECT_NEAR(flipped, 0.5, 0.05);  // of some thousand coins
}

TEST(ExampleNoise, IsotropicNoiseIsNormalInEveryDirection) {
  const Controlled c("isotropic");
  const double n = static_cast<double>(c.changed.numel());
  const at::Tensor unit = c.changed * (std::sqrt(n) / c.changed.norm());
  EXPECT_NEAR(unit.mean().item<double>(), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(unit.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR((unit.dot(c.z) / c.z.norm()).item<double>(), 0, 5);  // one normal number
}

TEST(ExampleNoise, ExchangedLayersKeepDirectionsAndSwapLengths) {
  const Controlled c("layers_exchanged");
  std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>
      layers;  // begin and end in the flat vector
  int64_t place = 0;
  for (const ParameterInfo& parameter : c.other.model->parameter_table()) {
    if (layers.empty() || layers.back().first != parameter.layer)
      layers.push_back({parameter.layer, {place, place}});
    layers.back().second.second = place += parameter.tensor.numel();
  }
  ASSERT_EQ(layers.size(), 2U);
  const auto part = [&](const at::Tensor& v, size_t layer) {
    const auto [begin, end] = layers[layer].second;
    return v.slice(0, begin, end);
  };
  for (size_t layer = 0; layer < 2; ++layer) {
    const at::Tensor mine = part(c.z, layer), changed = part(c.changed, layer), next = part(c.z, 1 - layer);
    EXPECT_LE(relative_difference(changed / changed.norm(), mine / mine.norm()), 1e-12);
    EXPECT_NEAR(changed.norm().item<double>(), next.norm().item<double>(), 1e-12);
  }
  EXPECT_GT(relative_difference(part(c.z, 0).norm(), part(c.z, 1).norm()), 0.1) << "nothing to exchange";
}

// A perturbation's two gradients have the same weights: as its radius goes to 0 the run is that of the noise alone.
TEST(ExampleNoise, IsTheSameInBothGradientsOfAPerturbation) {
  for (const char* control : {"none", "coordinate_signs"}) {
    RunSettings s = one_gradient(60, 6);
    noise_of(s).control = control;
    TestRun noisy(s), clean(one_gradient(60, 0));
    s.train.hook<PerturbationOptions>().kind = "sam";
    s.train.hook<PerturbationOptions>().rho = 1e-8;
    TestRun perturbed(s);
    const at::Tensor expected = gradient_of(noisy);
    EXPECT_LE(relative_difference(gradient_of(perturbed), expected), 1e-6) << control;  // rho times curvature
    EXPECT_GT(relative_difference(gradient_of(clean), expected), 0.1);
  }
}

TEST(ExampleNoise, MatchesWhatIsAskedFor) {
  ExampleNoiseOptions o;
  o.batch = 32;
  EXPECT_EQ(matched_batch(o, 5000, 0.4, 10), 32);
  o.reference_rate = 0.1;
  o.match = "step";  // rate^2 (1/b - 1/N) is the same on both sides
  const double step = matched_batch(o, 5000, 0.4, 10);
  EXPECT_NEAR(0.4 * 0.4 * (1 / step - 1.0 / 5000), 0.1 * 0.1 * (1.0 / 32 - 1.0 / 5000), 1e-15);
  o.match =
      "temperature";  // rate/(1 - momentum) (1/b - 1/N): the run's gain is 10, the reference has momentum 0.5
  o.reference_momentum = 0.5;
  const double temperature = matched_batch(o, 5000, 0.4, 10);
  EXPECT_NEAR(0.4 * 10 * (1 / temperature - 1.0 / 5000), 0.1 / 0.5 * (1.0 / 32 - 1.0 / 5000), 1e-15);
  o.reference_rate = 0.4;  // the same rate and momentum: the same batch
  o.reference_momentum = 0.9;
  EXPECT_NEAR(matched_batch(o, 5000, 0.4, 10), 32, 1e-12);
}

TEST(ExampleNoise, TakesTheRunsOwnPeakRateAndGain) {
  RunSettings s = one_gradient(50, 10);
  s.optimizer_settings = {"momentum=0.5"};
  s.train.learning_rate = 0.2;
  noise_of(s).match = "temperature";
  noise_of(s).reference_rate = 0.4;  // at momentum 0 the temperature of 0.2 at momentum 0.5
  TestRun run(s);
  const TrainResult result = run.run();
  EXPECT_NEAR(number(result, "noise_matched_batch"), 10, 1e-12);
  EXPECT_EQ(number(result, "noise_least_n_eff"), 50);
}

TEST(ExampleNoise, SaysWhereItIsInexact) {
  const auto events = [](RunSettings s) {
    TestRun run(s);
    run.run();
    return fmt::format("{}", fmt::join(run.listener.events, " "));
  };
  RunSettings crops = one_gradient(300, 20);
  EXPECT_EQ(events(crops), "");
  crops.data.augmentation = "crop_flip";
  EXPECT_THAT(events(crops), HasSubstr("augmented differently"));
  crops.train.batch_size = 150;
  EXPECT_EQ(events(crops), "");
  RunSettings ghosts = with_ghosts(16);
  ghosts.train.batch_size = 240;
  EXPECT_THAT(events(ghosts), HasSubstr("other ghost batches"));
}

std::string noise_refusal(RunSettings s) {
  return message_of([&] { TestRun run(s); });
}

TEST(ExampleNoise, RefusesWhatHasNoMeaningInOneLine) {
  EXPECT_EQ(noise_refusal(one_gradient(50, 51)),
            "noise.batch = 51 is above batch_size = 50: noise can only be added");
  // 300 of 200: 100 come up twice, 90,000/500 = 180 examples.
  EXPECT_EQ(noise_refusal(one_gradient(300, 181)),
            "noise.batch = 181: a batch of 181 is above 180, what the batch of update 1 is worth: noise can "
            "only be added");
  EXPECT_EQ(noise_refusal(one_gradient(300, 180)), "no error");
  RunSettings s = one_gradient(50, 10);
  noise_of(s).match = "step";
  EXPECT_THAT(noise_refusal(s), HasSubstr("needs noise.reference_rate > 0"));
  noise_of(s).reference_rate = 0.1;  // a tenth of the run's: the noise of its own batch is too much already
  EXPECT_THAT(noise_refusal(s), HasSubstr("(noise.match = \"step\") is above 50"));
  s.train.batch_milestones = {0.5};
  s.train.batch_rate_power = 0.5;
  EXPECT_THAT(noise_refusal(s), HasSubstr("\"step\" and batch_rate_power exclude each other"));
  s = one_gradient(50, 10);
  s.train.hook<NoiseGaugeOptions>().every = 1;
  EXPECT_THAT(noise_refusal(s), HasSubstr("noise_scale_every and noise.batch exclude each other"));
  s = one_gradient(50, 10);
  s.train.hook<PerturbationOptions>().kind = "sam";
  s.train.hook<PerturbationOptions>().examples = 10;
  EXPECT_THAT(noise_refusal(s), HasSubstr("noise.batch needs perturbation.examples = 0, not 10"));
  s = one_gradient(50, 10);
  s.optimizer = "lbfgs";
  s.optimizer_settings = {};
  EXPECT_THAT(noise_refusal(s), HasSubstr("an optimiser with overlap"));
  EXPECT_THAT(noise_refusal(with_ghosts(12)),
              HasSubstr("noise.batch = 12 must be a multiple of ghost_batch (8)"));
  s = with_ghosts(16);
  s.train.batch_size = 52;
  EXPECT_THAT(noise_refusal(s), HasSubstr("batch_size = 52 must be a multiple of ghost_batch (8)"));
  s = with_ghosts(8);
  s.train.batch_size = 8;
  EXPECT_EQ(noise_refusal(s), "no error");
  noise_of(s).match = "temperature";
  noise_of(s).reference_rate = 2;
  EXPECT_THAT(noise_refusal(s), HasSubstr("is a single ghost batch, of which no noise can be made"));
  s = one_gradient(50, 10);
  s.model_settings = {"hidden=[]"};
  noise_of(s).control = "layers_exchanged";
  EXPECT_THAT(noise_refusal(s), HasSubstr("needs a network of at least two layers"));
}

}  // namespace
}  // namespace basin::testing
