// At equal rate and updates a large batch with the noise of a small one trains as the small one does: a test of the machinery.
#include <gtest/gtest.h>

#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"

namespace basin::testing {
namespace {

constexpr int64_t kSmall = 5, kLarge = 100;

struct Case {
  std::string optimizer;
  std::vector<std::string> settings;
  double rate = 0;
  bool batch_norm = false;  // over kSmall examples at both batch sizes
  double share = 0;     // of the effect, which the noise arm may leave at most; 0: not resolved well enough
  bool linear = false;  // one layer under a squared loss
};

double end_loss(const Case& c, int64_t seed, int64_t batch, int64_t noise,
                const std::string& distribution = "gaussian") {
  RunSettings s = small_settings();
  // No example twice in the small batches: draws without replacement over whole epochs would cancel their noise.
  s.data.train_examples = 3000;
  s.optimizer = c.optimizer;
  s.optimizer_settings = c.settings;
  s.train.seed = seed;
  s.train.updates = 60;
  s.train.batch_size = batch;
  s.train.learning_rate = c.rate;
  if (c.linear) {
    s.model_settings = {"hidden=[]"};
    s.train.loss = "mse";
  }
  if (c.batch_norm) {
    s.model_settings = {"norm=batch"};
    s.train.ghost_batch = kSmall;
  }
  s.train.hook<ExampleNoiseOptions>().batch = noise;
  s.train.hook<ExampleNoiseOptions>().distribution = distribution;
  TestRun run(s);
  return number(run.run(), "train_loss");
}

struct Difference {
  double mean = 0, error = 0;
};

Difference difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0, squares = 0;
  const double n = static_cast<double>(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) / n;
  for (size_t i = 0; i < a.size(); ++i) squares += std::pow(a[i] - b[i] - sum, 2);
  return {sum, std::sqrt(squares / (n * (n - 1)))};
}

// Paired by seed: the same initial weights. The effect of small batches is resolved. Without batch normalisation the noise arm leaves less
// than three standard errors of it, and where the effect is resolved well enough less than a share of it at 95 %.
void expect_trains_as_small_batches(const Case& c, int64_t seeds) {
  std::vector<double> small, large;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    small.push_back(end_loss(c, seed, kSmall, 0));
    large.push_back(end_loss(c, seed, kLarge, 0));
  }
  const Difference effect = difference(small, large);
  for (const char* distribution : {"gaussian", "rademacher"}) {
    std::vector<double> noisy;
    for (int64_t seed = 1; seed <= seeds; ++seed)
      noisy.push_back(end_loss(c, seed, kLarge, kSmall, distribution));
    const Difference left = difference(noisy, small);
    const std::string name = fmt::format("{} {}{}{} {}", c.optimizer, fmt::join(c.settings, " "),
                                         c.batch_norm ? " bn" : "", c.linear ? " linear" : "", distribution);
    fmt::print("{}: small - large {:.4f} +- {:.4f}, noise - small {:.4f} +- {:.4f}\n", name, effect.mean,
               effect.error, left.mean, left.error);
    EXPECT_GT(std::abs(effect.mean), 5 * effect.error) << name;
    if (!c.batch_norm) {
      EXPECT_LT(std::abs(left.mean), 3 * left.error) << name;
    }
    if (c.share > 0) {
      EXPECT_LT(std::abs(left.mean) + 1.96 * left.error, c.share * std::abs(effect.mean)) << name;
    }
  }
}

// The expected loss of a linear model under a squared loss follows from the first two moments of the gradient at every rate, and these are
// the noise arm's: what is left is chance, and what the order of 3,000 examples without replacement makes of it.
TEST(NoiseEquivalence, IsExactForALinearModelUnderASquaredLoss) {
  for (const Case& c : {Case{"sgd", {"momentum=0"}, 0.001, false, 0.2, true},
                        Case{"sgd", {"momentum=0.9"}, 0.0001, false, 0.2, true}})
    expect_trains_as_small_batches(c, 20);
}

// A quarter of the effect under Adam and LARS (effects of 24 and 43 standard errors). Under SGD with batch normalisation the arm is weaker
// than small batches by a fifth without and a third with momentum, so half and three quarters are what these seeds can hold it to. SGD's
// effect without normalisation is too small or, at higher rates, too scattered for a bound. Third moments differ and single weights are
// negative, so exactly nothing isn't to be expected.
TEST(SlowNoiseEquivalence, TrainsAsPlainSmallBatches) {
  for (const Case& c : {Case{"sgd", {"momentum=0"}, 0.02, false, 0}, Case{"adam", {}, 0.001, false, 0.25},
                        Case{"lars", {}, 3.0, false, 0.25}, Case{"sgd", {"momentum=0"}, 0.1, true, 0.5},
                        Case{"sgd", {"momentum=0.9"}, 0.02, true, 0.75}})
    expect_trains_as_small_batches(c, 40);
}

}  // namespace
}  // namespace basin::testing
