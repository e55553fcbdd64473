// noise.preconditioner = "clean" in a run: two updates by hand from single gradients, clipping, no noise, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optim/perturbation.h"
#include "tests/support/message_of.h"
#include "tests/trainers/hooks/noise_options.h"
#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"
#include "trainers/hooks/gradient_clipping.h"
#include "trainers/hooks/ledger.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 60, kSmall = 6;
constexpr double kRate = 0.02;

RunSettings two_updates(const std::string& optimizer, const std::vector<std::string>& settings) {
  RunSettings s = small_settings();
  s.train.updates = 2;
  s.train.batch_size = kBatch;
  s.train.micro_batch = 16;
  s.train.learning_rate = kRate;
  s.optimizer = optimizer;
  s.optimizer_settings = settings;
  noise_of(s).batch = kSmall;
  noise_of(s).preconditioner = "clean";
  return s;
}

struct Gradients {
  std::vector<at::Tensor> clean, noisy;
};

/// At the weights of `at`, of the batch of update t = 0, 1: from single gradients by autograd and the noise's own formula. 60 of
/// 200 examples, none twice: n_eff = m = 60.
Gradients gradients_of(TestRun& at, int64_t t) {
  const double m = static_cast<double>(kBatch);
  const double s = std::sqrt(m * m / (m - 1) * (1.0 / kSmall - 1 / m));
  const Batch batch = ExampleStream(1, 200).slice(t * kBatch, kBatch, true);
  const NoiseDraws draws(1, "example-noise", false);
  double mean_xi = 0;
  for (const int64_t example : batch.examples) mean_xi += draws.at(t, example) / m;
  Gradients g;
  for (int64_t k = 0; k < kBatch; ++k) {
    const std::vector<at::Tensor> one = plain_gradient(at, t * kBatch + k, 1);
    const double xi = draws.at(t, batch.examples[static_cast<size_t>(k)]) - mean_xi;
    for (size_t i = 0; i < one.size(); ++i) {
      if (k == 0) g.clean.push_back(at::zeros_like(one[i])), g.noisy.push_back(at::zeros_like(one[i]));
      g.clean[i].add_(one[i], 1 / m);
      g.noisy[i].add_(one[i], 1 / m + s * xi / m);
    }
  }
  return g;
}

double length(const std::vector<at::Tensor>& tensors) {
  double squares = 0;
  for (const at::Tensor& tensor : tensors) squares += tensor.square().sum().item<double>();
  return std::sqrt(squares);
}

/// step(i, gradients, t) is what tensor i loses in update t = 1, 2.
template <class Step>
void expect_by_hand(const RunSettings& settings, const Step& step) {
  TestRun run(settings), hand(settings);
  run.run();
  const at::NoGradGuard no_grad;
  const std::vector<ParameterInfo>& parameters = hand.model->parameter_table();
  for (int64_t t = 0; t < 2; ++t) {
    const Gradients g = [&] {
      const at::AutoGradMode with_grad(true);
      return gradients_of(hand, t);
    }();
    EXPECT_GT(length(g.noisy), 1.3 * length(g.clean)) << "no noise to see";
    for (size_t i = 0; i < parameters.size(); ++i) at::Tensor(parameters[i].tensor).sub_(step(i, g, t + 1));
  }
  // Sums of some hundred float64 numbers in another order, divided by roots of small second moments.
  EXPECT_LE(relative_difference(run.weights(), hand.weights()), 1e-10) << settings.optimizer;
}

std::vector<at::Tensor> weights_of(const RunSettings& s) {
  const TestRun run(s);
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& p : run.model->parameter_table()) weights.push_back(p.tensor.detach().clone());
  return weights;
}

std::vector<at::Tensor> zeros_of(const RunSettings& s) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& weights : weights_of(s)) zeros.push_back(at::zeros_like(weights));
  return zeros;
}

TEST(CleanPreconditioner, AdamHasItsSecondMomentFromTheCleanGradient) {
  const RunSettings s = two_updates("adam", {"beta1=0.8", "beta2=0.9", "eps=0.001"});
  std::vector<at::Tensor> m = zeros_of(s), v = zeros_of(s);
  expect_by_hand(s, [&](size_t i, const Gradients& g, int64_t t) {
    m[i] = 0.8 * m[i] + 0.2 * g.noisy[i];
    v[i] = 0.9 * v[i] + 0.1 * g.clean[i] * g.clean[i];
    const double steps = static_cast<double>(t);
    return kRate * (m[i] / (1 - std::pow(0.8, steps))) / ((v[i] / (1 - std::pow(0.9, steps))).sqrt() + 0.001);
  });
}

TEST(CleanPreconditioner, LarsHasItsRatioFromTheCleanGradient) {
  const RunSettings s = two_updates("lars", {"momentum=0", "weight_decay=0", "trust_coefficient=1"});
  std::vector<at::Tensor> w = weights_of(s);
  expect_by_hand(s, [&](size_t i, const Gradients& g, int64_t) {
    const bool trusted = w[i].dim() > 1;  // not the biases
    const at::Tensor ratio = trusted ? w[i].norm() / g.clean[i].norm() : at::ones({}, at::kDouble);
    const at::Tensor step = kRate * ratio * g.noisy[i];
    w[i] = w[i] - step;
    return step;
  });
}

TEST(CleanPreconditioner, ClippingHasItsFactorFromTheCleanGradient) {
  RunSettings s = two_updates("sgd", {"momentum=0"});
  s.train.hook<GradientClippingOptions>().limit = 0.3;
  expect_by_hand(s, [&](size_t i, const Gradients& g, int64_t) {
    EXPECT_GT(length(g.clean), 0.3) << "nothing to clip";
    return kRate * 0.3 / length(g.clean) * g.noisy[i];
  });
  // Adam's v has the clipped clean gradient: with one common factor and eps = 0 nothing of it is left.
  RunSettings adam = two_updates("adam", {"eps=0", "beta1=0"});
  adam.train.updates = 1;
  TestRun plain(adam);
  adam.train.hook<GradientClippingOptions>().limit = 0.3;
  TestRun clipped(adam);
  plain.run();
  clipped.run();
  EXPECT_LE(relative_difference(clipped.weights(), plain.weights()), 1e-10);
}

// As many draws as the batch has: the noise vector is 0, and the update that of a control without noise, bit for bit.
TEST(CleanPreconditioner, IsNothingWhereThereIsNoNoise) {
  for (const char* optimizer : {"sgd", "adam", "lars", "lamb"}) {
    RunSettings s = two_updates(optimizer, {});
    s.train.hook<GradientClippingOptions>().limit = 0.3;
    noise_of(s).batch = kBatch;
    TestRun clean(s);
    noise_of(s).preconditioner = "noisy";
    TestRun without(s);
    noise_of(s).control = "coordinate_signs";
    TestRun apart(s);
    for (TestRun* run : {&clean, &without, &apart}) run->run();
    EXPECT_TRUE(clean.weights().equal(apart.weights())) << optimizer;
    EXPECT_LE(relative_difference(clean.weights(), without.weights()), 1e-12) << optimizer;
  }
}

TEST(CleanPreconditioner, IsInTheRecord) {
  RunSettings s = two_updates("lamb", {});
  TestRun clean(s), start(s);
  const Gradients g = gradients_of(start, 0);
  clean.run();
  std::vector<at::Tensor> z;
  for (size_t i = 0; i < g.clean.size(); ++i) z.push_back(g.noisy[i] - g.clean[i]);
  const UpdateRecord& update = clean.listener.updates.at(0);
  ASSERT_EQ(update.hook_values.size(), 6U);
  EXPECT_NEAR(update.hook_values[4], length(z), 1e-12 * length(z));
  EXPECT_NEAR(update.hook_values[5], length(g.clean), 1e-12 * length(g.clean));
  EXPECT_NEAR(update.gradient_norm, length(g.noisy), 1e-12 * length(g.noisy)) << "of the gradient as it came";
  EXPECT_EQ(update.gradients, 2 * kBatch);
  noise_of(s).control = "isotropic";
  EXPECT_EQ(TestRun(s).trainer->hook_columns().size(), 7U);
}

TEST(CleanPreconditioner, IsRefusedWhereItHasNoMeaning) {
  const auto refusal = [](const RunSettings& s) { return message_of([&] { TestRun run(s); }); };
  RunSettings s = two_updates("adam", {});
  s.train.hook<PerturbationOptions>().kind = "sam";
  EXPECT_THAT(refusal(s),
              HasSubstr("noise.preconditioner = \"clean\" and perturbation.kind exclude each other"));
  s = two_updates("adam", {});
  s.train.hook<LedgerGaugeOptions>().every = 1;
  EXPECT_THAT(refusal(s), HasSubstr("noise.preconditioner"));
  EXPECT_THAT(refusal(two_updates("lbfgs", {})), HasSubstr("overlap"));
  RunSettings off = two_updates("lbfgs", {});
  noise_of(off).batch = 0;
  EXPECT_EQ(refusal(off), "no error") << "without noise it is nothing";
}

}  // namespace
}  // namespace basin::testing
