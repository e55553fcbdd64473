// The gradient noise scale, estimated during training: its estimates over the draw of the batch, against autograd and
// by plain sums; the bits of the run, a resume, and what there is no number for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/math/statistics.h"
#include "io/run_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainers/recorded_run.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/noise_average.h"
#include "trainers/hooks/noise_gauge.h"
#include "trainers/hooks/noise_look.h"
#include "trainers/hooks/perturbed_gradient.h"

namespace basin::testing {
namespace {

using ExampleGradient = std::array<double, 3>;

double square(const ExampleGradient& v) { return std::inner_product(v.begin(), v.end(), v.begin(), 0.0); }

/// A training set of 12 whose single gradients are known: |G|^2 and tr Sigma by their definitions.
struct KnownSet {
  static constexpr size_t kExamples = 12;
  std::array<ExampleGradient, kExamples> gradients{};
  double g2 = 0, tr_sigma = 0;

  KnownSet() {
    ExampleGradient mean{};
    for (size_t i = 0; i < kExamples; ++i) {
      for (size_t d = 0; d < 3; ++d) {
        gradients[i][d] = 0.4 + std::sin(1.0 + 3.0 * static_cast<double>(3 * i + d));
        mean[d] += gradients[i][d] / kExamples;
      }
    }
    g2 = square(mean);
    for (const ExampleGradient& g : gradients)
      tr_sigma += square({g[0] - mean[0], g[1] - mean[1], g[2] - mean[2]}) / kExamples;
  }

  MicroBatchNorms norms(const Batch& batch, int64_t micro_batch) const {
    MicroBatchNorms found;
    ExampleGradient whole{}, part{};
    for (size_t row = 0; row < batch.examples.size(); ++row) {
      for (size_t d = 0; d < 3; ++d) {
        part[d] += static_cast<double>(batch.counts[row]) *
                   gradients[static_cast<size_t>(batch.examples[row])][d] / static_cast<double>(batch.size);
      }
      const bool ends = (row + 1) % static_cast<size_t>(micro_batch) == 0 || row + 1 == batch.examples.size();
      if (!ends) continue;
      found.parts.push_back(square(part));
      for (size_t d = 0; d < 3; ++d) whole[d] += part[d];
      part = {};
    }
    found.mean = square(whole);
    return found;
  }
};

struct DrawCase {
  std::string name;
  int64_t start, size, micro_batch;
  bool merged;
};

std::ostream& operator<<(std::ostream& out, const DrawCase& c) { return out << c.name; }

class NoiseLookDraws : public ::testing::TestWithParam<DrawCase> {};

// 4.5 standard errors of the mean over 4,000 orders: seven in a million false alarms per number, if all were
// normal.
TEST_P(NoiseLookDraws, AreUnbiasedOverTheOrderOfExamples) {
  const DrawCase& c = GetParam();
  const KnownSet set;
  std::vector<double> tr_sigma, g2;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    const Batch batch = ExampleStream(seed, KnownSet::kExamples).slice(c.start, c.size, c.merged);
    const NoiseLook look =
        look_at_noise(batch, c.micro_batch, set.norms(batch, c.micro_batch), KnownSet::kExamples);
    ASSERT_TRUE(look.available());
    tr_sigma.push_back(look.tr_sigma);
    g2.push_back(look.g2);
  }
  const SampleMean trace = mean_of(tr_sigma), signal = mean_of(g2);
  EXPECT_NEAR(trace.value, set.tr_sigma, 4.5 * trace.standard_error);
  EXPECT_NEAR(signal.value, set.g2,
              4.5 * signal.standard_error + 1e-12);  // of the whole set: rounding of 4,000 sums
  EXPECT_LT(trace.standard_error, 0.02 * set.tr_sigma) << "a test that would let anything pass";
  EXPECT_LT(signal.standard_error, 0.05 * set.g2);
}

INSTANTIATE_TEST_SUITE_P(Cases, NoiseLookDraws,
                         ::testing::Values(DrawCase{"within_an_epoch", 2, 8, 3, true},
                                           DrawCase{"a_whole_epoch", 0, 12, 5, true},
                                           DrawCase{"across_epochs_merged", 8, 9, 3, true},
                                           DrawCase{"across_epochs_repeated", 8, 9, 3, false},
                                           DrawCase{"beyond_the_set_merged", 5, 30, 5, true},
                                           DrawCase{"beyond_the_set_repeated", 5, 30, 7, false}),
                         [](const auto& info) { return info.param.name; });

TEST(NoiseLookTest, SaysNothingOfOneMicroBatchOrOfTheSameOneTwice) {
  const KnownSet set;
  ExampleStream stream(1, KnownSet::kExamples);
  const Batch one = stream.slice(0, 8, true), twice = stream.slice(0, 24, false);
  EXPECT_FALSE(look_at_noise(one, 8, set.norms(one, 8), 12).available());
  const NoiseLook look = look_at_noise(twice, 12, set.norms(twice, 12), 12);
  EXPECT_FALSE(look.available());
  EXPECT_TRUE(std::isnan(look.g2) && std::isnan(look.tr_sigma));
}

TEST(NoiseAverageTest, IsTheWeightedMeanWithItsError) {
  const std::vector<double> x{3, 5, 2, 8, 4, 6}, y{1, 0.5, 1.5, 0.8, 1.1, 0.9};
  const double beta = 0.8;
  NoiseAverage average(beta), resumed(beta);
  std::vector<double> w;
  double total = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    average.add(x[k], y[k]);
    resumed.load_state(average.state());
    w.push_back(std::pow(beta, static_cast<double>(x.size() - 1 - k)));
    total += w.back();
  }
  double q = 0, mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    w[k] /= total;
    q += w[k] * w[k];
    mean_x += w[k] * x[k];
    mean_y += w[k] * y[k];
  }
  for (size_t k = 0; k < x.size(); ++k) {
    xx += w[k] * (x[k] - mean_x) * (x[k] - mean_x);
    yy += w[k] * (y[k] - mean_y) * (y[k] - mean_y);
    xy += w[k] * (x[k] - mean_x) * (y[k] - mean_y);
  }
  const double grow = q / (1 - q);
  for (const NoiseMeans& means : {average.means(), resumed.means()}) {
    EXPECT_NEAR(means.looks, 1 / q, 1e-12);
    EXPECT_NEAR(means.tr_sigma.value, mean_x, 1e-12);
    EXPECT_NEAR(means.g2.value, mean_y, 1e-12);
    EXPECT_NEAR(means.tr_sigma.error, std::sqrt(grow * xx), 1e-12);
    EXPECT_NEAR(means.g2.error, std::sqrt(grow * yy), 1e-12);
    EXPECT_NEAR(means.b_simple.value, mean_x / mean_y, 1e-12);
    const double r = mean_x / mean_y;
    EXPECT_NEAR(means.b_simple.error, std::sqrt(grow * (xx - 2 * r * xy + r * r * yy)) / mean_y, 1e-12);
    EXPECT_TRUE(means.resolved);
  }
}

TEST(NoiseAverageTest, OneLookHasNoErrorAndAWeakSignalIsNotResolved) {
  NoiseAverage average(0.9);
  average.add(2, 1);
  EXPECT_EQ(average.means().b_simple.value, 2);
  EXPECT_TRUE(std::isnan(average.means().g2.error));
  EXPECT_FALSE(average.means().resolved);
  average.add(2, -1.5);  // nothing is clamped
  EXPECT_LT(average.means().g2.value, 0);
  EXPECT_FALSE(average.means().resolved);
}

// Normal looks: four of them, and many in a window of (1 + 0.9)/(1 - 0.9) = 19. 3,000 repetitions have a
// standard error of 0.004 on the coverage; 0.02 is five of those.
TEST(NoiseAverageTest, TheIntervalHoldsTheTruthNineteenTimesInTwenty) {
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  for (const int looks : {4, 80}) {
    int ratio = 0, signal = 0, runs = 3000;
    for (int i = 0; i < runs; ++i) {
      NoiseAverage average(0.9);
      for (int k = 0; k < looks; ++k) {
        const double common = normal(engine);
        average.add(5 + common, 1 + 0.1 * common + 0.2 * normal(engine));
      }
      const NoiseMeans means = average.means();
      ratio += means.b_simple.low <= 5 && 5 <= means.b_simple.high;
      signal += means.g2.low <= 1 && 1 <= means.g2.high;
    }
    EXPECT_NEAR(static_cast<double>(ratio) / runs, 0.95, 0.02) << looks;
    EXPECT_NEAR(static_cast<double>(signal) / runs, 0.95, 0.02) << looks;
  }
}

// ---- in a run

RunSettings looking(int64_t every, int64_t batch_size, int64_t micro_batch) {
  RunSettings s = small_settings();
  s.train.batch_size = batch_size;
  s.train.micro_batch = micro_batch;
  s.train.hook<NoiseGaugeOptions>().every = every;
  return s;
}

double entry(const TestRun& run, size_t row, const std::string& name) {
  const Table table = run.trainer->hook_tables().at(0);
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].name == name) return run.listener.rows.at("noise_scale").at(row).at(i);
  ADD_FAILURE() << "no column " << name;
  return NAN;
}

double squared(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& t : tensors) sum += t.square().sum().item<double>();
  return sum;
}

TEST(OnlineNoiseTest, IsThatOfTheMicroBatchesByAutograd) {
  TestRun run(looking(1, 50, 20)), by_hand(looking(0, 50, 20));
  run.run_until(1);
  // 20, 20 and 10 examples of an epoch of 200.
  const double scatter = 20 * squared(plain_gradient(by_hand, 0, 20)) +
                         20 * squared(plain_gradient(by_hand, 20, 20)) +
                         10 * squared(plain_gradient(by_hand, 40, 10));
  const double mean = squared(plain_gradient(by_hand, 0, 50));
  const double trace = (scatter - 50 * mean) / 2;
  EXPECT_NEAR(entry(run, 0, "tr_sigma"), trace * 199 / 200, 1e-11 * trace);  // float64 rounding of sums
  EXPECT_NEAR(entry(run, 0, "g2"), mean - trace * (1.0 / 50 - 1.0 / 200), 1e-11 * trace);
  EXPECT_EQ(entry(run, 0, "micro_batches"), 3);
  EXPECT_EQ(entry(run, 0, "batch_size"), 50);
  EXPECT_EQ(entry(run, 0, "status"), 1) << "one look resolves nothing";
}

// 300 positions of a set of 200: all examples, half of them twice; rows in order of their first appearance.
TEST(OnlineNoiseTest, WeighsMergedExamples) {
  TestRun run(looking(1, 300, 150)), by_hand(looking(0, 300, 150));
  run.run_until(1);
  const Batch stream = ExampleStream(1, 200).slice(0, 300, false);
  std::vector<double> times(200, 0);
  for (const int64_t example : stream.examples) times[static_cast<size_t>(example)] += 1;
  double scatter = 0, degrees = -500.0 / 300;  // 100 of them once, 100 twice: 100 + 4 * 100
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 150}, {150, 200}}) {
    std::vector<at::Tensor> sum;
    double size = 0, squares = 0;
    for (int64_t row = first; row < last; ++row) {
      const double k = times[static_cast<size_t>(stream.examples[static_cast<size_t>(row)])];
      const std::vector<at::Tensor> g = plain_gradient(by_hand, row, 1);
      for (size_t p = 0; p < g.size(); ++p) {
        if (sum.size() <= p) sum.push_back(at::zeros_like(g[p]));
        sum[p] = sum[p] + k * g[p];
      }
      size += k;
      squares += k * k;
    }
    scatter += squared(sum) / size;
    degrees += squares / size;
  }
  const double mean = squared(plain_gradient(by_hand, 0, 300));
  const double trace = (scatter - 300 * mean) / degrees;
  EXPECT_NEAR(entry(run, 0, "tr_sigma"), trace * 199 / 200, 1e-11 * trace);
  EXPECT_NEAR(entry(run, 0, "g2"), mean - trace * (500.0 / 90000 - 1.0 / 200), 1e-11 * trace);
}

TEST(OnlineNoiseTest, LooksAtEveryKthUpdateAndResolvesAStrongSignal) {
  RunSettings s = looking(2, 100, 10);
  s.train.updates = 41;
  TestRun run(s);
  run.run();
  ASSERT_EQ(run.listener.rows.at("noise_scale").size(), 20u);
  for (size_t row = 0; row < 20; ++row) {
    EXPECT_EQ(entry(run, row, "update"), 2.0 * static_cast<double>(row + 1));
    EXPECT_EQ(entry(run, row, "b_simple"), entry(run, row, "tr_sigma_mean") / entry(run, row, "g2_mean"));
  }
  EXPECT_EQ(entry(run, 19, "status"), 0);
  EXPECT_LT(entry(run, 19, "b_simple_low"), entry(run, 19, "b_simple"));
  EXPECT_GT(entry(run, 19, "b_simple_high"), entry(run, 19, "b_simple"));
}

std::vector<RunSettings> kinds_of_runs() {
  RunSettings plain = looking(1, 50, 20);
  plain.train.dtype = "float32";
  RunSettings noisy = looking(1, 24, 12);
  noisy.model = "keskar_c1";
  noisy.model_settings = {"width=2", "hidden=[8, 6]", "norm=batch", "dropout=0.5"};
  noisy.train.ghost_batch = 6;
  noisy.train.dtype = "float32";
  noisy.train.updates = 3;
  noisy.data.augmentation = "crop_flip";
  RunSettings growing = looking(2, 300, 64);
  growing.train.updates = 6;
  growing.train.batch_milestones = {0.5};
  growing.train.hook<GradientClippingOptions>().limit = 0.01;
  return {plain, noisy, growing};
}

TEST(OnlineNoiseTest, ChangesNoBitOfTheRun) {
  for (const RunSettings& s : kinds_of_runs()) {
    RunSettings off = s, theirs = s;
    off.train.hook<NoiseGaugeOptions>().every = 0;
    TestRun with(s), without(off);
    with.run();
    without.run();
    EXPECT_TRUE(with.weights().equal(without.weights())) << s.model;
    ASSERT_FALSE(with.listener.rows.at("noise_scale").empty());
    EXPECT_TRUE(without.listener.rows.empty());
    EXPECT_TRUE(without.trainer->hook_tables().empty());
    for (size_t t = 0; t < without.listener.updates.size(); ++t) {
      EXPECT_EQ(with.listener.updates[t].loss, without.listener.updates[t].loss);
      EXPECT_EQ(with.listener.updates[t].gradient_norm, without.listener.updates[t].gradient_norm);
    }
    theirs.train.hook<NoiseGaugeOptions>().every = 2;
    theirs.train.batch_milestones = off.train.batch_milestones = {};
    theirs.train.hook<NoiseGaugeOptions>().compat = "gpt-neox";
    TestRun neox(theirs), plain(off);
    neox.run();
    plain.run();
    EXPECT_TRUE(neox.weights().equal(plain.weights())) << s.model;
  }
}

TEST(OnlineNoiseTest, ABatchOfOneMicroBatchIsUnavailable) {
  TestRun run(looking(2, 50, 50));
  run.run();
  ASSERT_EQ(run.listener.rows.at("noise_scale").size(), 2u);
  EXPECT_EQ(entry(run, 1, "status"), 2);
  for (const char* name : {"g2", "tr_sigma", "g2_mean", "tr_sigma_mean", "b_simple"})
    EXPECT_TRUE(std::isnan(entry(run, 1, name))) << name;
}

// Gradients of 1e200 have a square beyond float64, while the loss, of some 1e100, is a number.
TEST(OnlineNoiseTest, AnOverflowIsNotFiniteAndLeavesTheMeansAlone) {
  RunSettings s = looking(1, 50, 25);
  s.train.divergence_loss = 1e300;
  s.train.updates = 2;
  TestRun run(s);
  run.run_until(1);
  const double before = entry(run, 0, "g2_mean");
  {
    const at::NoGradGuard no_grad;
    const auto& table = run.model->parameter_table();
    for (size_t p = 0; p < table.size(); ++p)
      at::Tensor(table[p].tensor).mul_(p < table.size() / 2 ? 1e-100 : 1e200);
  }
  run.run_until(2);
  ASSERT_EQ(run.listener.rows.at("noise_scale").size(), 2u);
  EXPECT_EQ(entry(run, 1, "status"), 3);
  EXPECT_TRUE(std::isnan(entry(run, 1, "b_simple")));
  Checkpoint checkpoint;
  run.trainer->save(checkpoint);
  EXPECT_EQ(std::get<std::vector<double>>(checkpoint.progress.at("noise_scale")).at(3), before);
}

class OnlineNoiseFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(OnlineNoiseFiles, AreTheSameAfterAStopAndACrash) {
  RunSettings s = looking(std::string(GetParam()) == "none" ? 1 : 4, 50, 20);
  s.train.hook<NoiseGaugeOptions>().compat = GetParam();
  s.train.updates = 9;
  const TemporaryFolder quiet, disturbed;
  RecordedRun(s, quiet.path()).finish();
  {
    RecordedRun first(s, disturbed.path());
    first.recorder.conclude(first.run_until(3));
  }
  {
    RecordedRun second(s, disturbed.path());
    Crash crash(6);
    second.trainer->observe(crash);
    EXPECT_THROW(second.run(), std::runtime_error);
  }
  RecordedRun third(s, disturbed.path());
  EXPECT_TRUE(third.resumed);
  third.finish();
  const RunRecord record = read_run_file(quiet / "run.h5");
  expect_same_tables(read_run_file(disturbed / "run.h5"), record);
  EXPECT_EQ(record.tables.at("noise_scale").row_count(), std::string(GetParam()) == "none" ? 9 : 2);
  const Checkpoint a = read_checkpoint(disturbed / "ckpt/end.h5"), b = read_checkpoint(quiet / "ckpt/end.h5");
  EXPECT_EQ(a.progress.at("noise_scale"), b.progress.at("noise_scale"));
  const NamedTensors &sum = a.state("gradient_sum"), &expected = b.state("gradient_sum");
  ASSERT_EQ(sum.size(), std::string(GetParam()) == "none" ? 0 : b.parameters.size());
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_TRUE(sum[i].second.equal(expected.at(i).second));
}

INSTANTIATE_TEST_SUITE_P(Compat, OnlineNoiseFiles, ::testing::Values("none", "gpt-neox"),
                         [](const auto& info) {
                           return std::string(info.param) == "none" ? "ours" : "gpt_neox";
                         });

TEST(OnlineNoiseTest, TheTableSaysHowItWasMeasured) {
  RunSettings s = kinds_of_runs()[1];
  TestRun run(s);
  const auto attributes = run.trainer->hook_tables().at(0).attributes;
  const auto has = [&](const std::string& key, const OptionValue& value) {
    return std::find(attributes.begin(), attributes.end(), std::pair{key, value}) != attributes.end();
  };
  EXPECT_TRUE(has("bn_mode", std::string("ghost_batch")));
  EXPECT_TRUE(has("ghost_batch", int64_t{6}));
  EXPECT_TRUE(has("dropout", true));
  EXPECT_TRUE(has("augmentation", std::string("crop_flip")));
}

TEST(OnlineNoiseTest, RefusesWhatMakesNoSense) {
  RunSettings s = looking(1, 50, 20);
  s.train.hook<PerturbationOptions>().kind = "sam";
  EXPECT_EQ(message_of([&] { TestRun run(s); }),
            "noise_scale_every and perturbation.kind exclude each other");
  s = looking(1, 50, 20);
  s.optimizer = "lbfgs";
  EXPECT_EQ(message_of([&] { TestRun run(s); }),
            "noise_scale_every and an optimiser with overlap exclude each other");
  s = looking(1, 50, 20);
  s.train.hook<NoiseGaugeOptions>().compat = "gpt-neox";
  EXPECT_THAT(message_of([&] { TestRun run(s); }),
              ::testing::HasSubstr("needs noise_scale_every >= 2, not 1"));
  s.train.hook<NoiseGaugeOptions>().every = 2;
  s.train.batch_milestones = {0.5};
  EXPECT_EQ(message_of([&] { TestRun run(s); }),
            "noise_scale_compat = \"gpt-neox\" and batch_milestones exclude each other");
}

TEST(OnlineNoiseTest, IsMissedInACheckpointWithoutIt) {
  TestRun run(looking(1, 50, 20)), other(looking(1, 50, 20));
  run.run_until(1);
  Checkpoint checkpoint = run.listener.checkpoints.at("latest");
  checkpoint.progress["noise_scale"] = std::vector<double>{1, 2};
  EXPECT_THROW(other.trainer->restore(checkpoint), IoError);
  checkpoint.progress.erase("noise_scale");
  EXPECT_THROW(other.trainer->restore(checkpoint), IoError);
}

}  // namespace
}  // namespace basin::testing
