// At equal rate and updates a large batch with the noise of a small one trains as the small one does: a test of the machinery.
#include <gtest/gtest.h>

#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"

namespace basin::testing {
namespace {

constexpr int kSeeds = 40;
constexpr int64_t kSmall = 5, kLarge = 100;

double end_loss(const std::string& optimizer, double rate, int64_t seed, int64_t batch, int64_t noise,
                const std::string& distribution = "gaussian") {
  RunSettings s = small_settings();
  // No example twice in the small batches: draws without replacement over whole epochs would cancel their noise.
  s.data.train_examples = 3000;
  s.optimizer = optimizer;
  s.train.seed = seed;
  s.train.updates = 60;
  if (optimizer == "sgd") s.optimizer_settings = {"momentum=0"};
  s.train.batch_size = batch;
  s.train.learning_rate = rate;
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

// Paired by seed: the same initial weights. The effect of small batches is resolved, and the noise arm leaves less than three standard
// errors of it. Under Adam and LARS, where the effect is 24 and 43 standard errors, what it leaves is below a quarter of the effect at
// 95 %; SGD's effect is too small for that at forty seeds. Third moments differ and single weights are negative, so exactly nothing isn't to
// be expected.
TEST(SlowNoiseEquivalence, TrainsAsPlainSmallBatches) {
  for (const auto& [optimizer, rate] :
       {std::pair{std::string("sgd"), 0.02}, {"adam", 0.001}, {"lars", 3.0}}) {
    for (const char* distribution : {"gaussian", "rademacher"}) {
      std::vector<double> small, large, noisy;
      for (int64_t seed = 1; seed <= kSeeds; ++seed) {
        small.push_back(end_loss(optimizer, rate, seed, kSmall, 0));
        large.push_back(end_loss(optimizer, rate, seed, kLarge, 0));
        noisy.push_back(end_loss(optimizer, rate, seed, kLarge, kSmall, distribution));
      }
      const Difference effect = difference(small, large), left = difference(noisy, small);
      fmt::print("{} {}: small - large {:.4f} +- {:.4f}, noise - small {:.4f} +- {:.4f}\n", optimizer,
                 distribution, effect.mean, effect.error, left.mean, left.error);
      EXPECT_GT(std::abs(effect.mean), 5 * effect.error) << optimizer;
      EXPECT_LT(std::abs(left.mean), 3 * left.error) << optimizer << ' ' << distribution;
      if (optimizer == "sgd") continue;
      EXPECT_LT(std::abs(left.mean) + 1.96 * left.error, 0.25 * std::abs(effect.mean)) << optimizer;
    }
  }
}

}  // namespace
}  // namespace basin::testing
