#include "probes/gradient_statistics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "probes/estimators/percentile.h"
#include "tests/probes/known_gradients.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;
using testing::value_of;
using Known = testing::KnownGradients;

double sum_of(const at::Tensor& values) { return values.sum().item<double>(); }

/// G_j^2 / V_j of the rows of g, by column.
at::Tensor ratios(const at::Tensor& g) { return g.mean(0).square() / (g - g.mean(0)).square().mean(0); }

// On the examples measured, the covariance with 1/n: exact, and without error.
TEST(GradientStatistics, IdentitiesHoldOnTheSet) {
  Known known;
  const ProbeResult result = run_probe("gradient_statistics", known.objective);
  const at::Tensor g = known.gradients();
  const double n = 43, squares = sum_of(g.square()), of_sum = sum_of(g.sum(0).square());
  const double diversity = value_of(result, "diversity_finite"), b = value_of(result, "b_simple_finite");
  const double coherence = value_of(result, "coherence_finite");
  EXPECT_NEAR(diversity, squares / of_sum, 1e-12 * diversity);
  EXPECT_NEAR(coherence, of_sum / n / squares, 1e-12);
  EXPECT_NEAR(value_of(result, "batch_bound_finite"), n * diversity, 1e-12 * n * diversity);
  EXPECT_NEAR(n * diversity, 1 + b, 1e-12 * (1 + b));
  EXPECT_NEAR(coherence, 1 / (1 + b), 1e-13);
  EXPECT_NEAR(b, sum_of((g - g.mean(0)).square()) * n / of_sum, 1e-11 * b);
  for (const char* name : {"diversity_finite", "batch_bound_finite", "coherence_finite", "gsnr_finite"}) {
    EXPECT_EQ(quantity(result, name).uncertainty_kind, UncertaintyKind::none) << name;
    EXPECT_EQ(quantity(result, name).uncertainty[0], 0) << name;
  }
  // It holds for the distribution too, since both sides take one estimate of |G|^2.
  const double population = value_of(result, "b_simple");
  EXPECT_NEAR(value_of(result, "batch_bound"), 1 + population, 1e-11 * (1 + population));
  EXPECT_NEAR(value_of(result, "coherence"), 1 / (1 + population), 1e-12);
}

TEST(GradientStatistics, SignalToNoiseIsThatOfKnownGradients) {
  Known known;
  const at::Tensor r = ratios(known.gradients());
  const double mean = r.mean().item<double>();
  const ProbeResult whole = run_probe("gradient_statistics", known.objective);
  EXPECT_NEAR(value_of(whole, "gsnr_finite"), mean, 1e-11 * mean);
  EXPECT_NEAR(value_of(whole, "gsnr_layer_mean_finite"), mean, 1e-11 * mean);  // one layer
  EXPECT_EQ(attribute<int64_t>(whole, "gsnr_parameters"), 15);
  // With S_j^2 = V_j n / (n - 1): G_j^2 / S_j^2 - 1/n, and for the set of 200 with 1/n - 1/N and S^2 (N - 1)
  // / N.
  const double n = 43, of_s = mean * (n - 1) / n;
  EXPECT_NEAR(value_of(whole, "gsnr"), of_s - 1 / n, 1e-11 * mean);
  const ProbeResult part = run_probe("gradient_statistics", known.objective, {}, 11, 200);
  EXPECT_NEAR(value_of(part, "gsnr_finite"), (of_s - 1 / n + 1.0 / 200) * 200 / 199, 1e-11 * mean);
  EXPECT_GT(quantity(part, "gsnr_finite").uncertainty[0], 0);
  // An estimate from a part, or for a distribution, is biased by as much as it is.
  EXPECT_EQ(quantity(whole, "gsnr_finite").status, ProbeStatus::ok);
  EXPECT_EQ(quantity(whole, "gsnr").status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(part, "gsnr_finite").status, ProbeStatus::not_resolved);
  EXPECT_EQ(whole.status, ProbeStatus::ok);
}

// Biases of attention's keys change no output: their gradients are rounding, and another order of the sums another ratio of it.
TEST(GradientStatistics, GradientsThatAreRoundingDoNotCount) {
  const auto batch = testing::tiny_batch(testing::tiny_input_shape("gpt"), 30);
  const auto gpt = testing::tiny_model("gpt", {"bias=true", "layers=1", "width=8", "heads=2"});
  const at::Tensor labels = gpt->forward(batch.images).argmax(-1);
  std::vector<double> found;
  for (const int64_t micro_batch : {7, 30}) {
    Objective objective(gpt, LossKind::token_cross_entropy, batch.images, labels, micro_batch);
    const ProbeResult result = run_probe("gradient_statistics", objective);
    found.push_back(value_of(result, "gsnr_finite"));
    EXPECT_LE(attribute<int64_t>(result, "gsnr_parameters"), objective.parameters().size() - 8);
  }
  EXPECT_NEAR(found[0], found[1], 1e-9 * std::abs(found[1]));
}

// The infinitesimal jackknife is the limit of leaving examples out in part: central differences by their
// weights.
TEST(GradientStatistics, ErrorOfTheSignalToNoiseRatioIsThatOfReweighting) {
  Known known;
  const at::Tensor g = known.gradients();
  const int64_t n = g.size(0);
  const auto mean_ratio = [&](int64_t i, double extra) {
    at::Tensor weights = at::ones({n, 1}, at::kDouble);
    weights[i] += extra;
    weights /= weights.sum();
    const at::Tensor mean = (weights * g).sum(0);
    return (mean.square() / ((weights * g.square()).sum(0) - mean.square())).mean().item<double>();
  };
  at::Tensor slopes = at::empty({n}, at::kDouble);
  for (int64_t i = 0; i < n; ++i)
    slopes[i] = (mean_ratio(i, 1e-4) - mean_ratio(i, -1e-4)) / 2e-4 * static_cast<double>(n);
  const double error = slopes.std().item<double>() / std::sqrt(static_cast<double>(n));
  const ProbeResult result = run_probe("gradient_statistics", known.objective);
  // Differences at 1e-4 of a weight of one in 43.
  EXPECT_NEAR(quantity(result, "gsnr").uncertainty[0], error * 42 / 43, 1e-6 * error);
}

TEST(GradientStatistics, ByLayerAreTheNumbersOfTheLayersGradients) {
  const auto model = testing::tiny_mlp();
  const auto batch = testing::tiny_batch(testing::tiny_shape(), 30);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 8);
  const ProbeResult result = run_probe("gradient_statistics", objective, {"by_layer=true"});
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < 30; ++i) rows.push_back(objective.gradient_over(at::full({1}, i, at::kLong)));
  const at::Tensor g = at::stack(rows);
  EXPECT_EQ(attribute<std::vector<std::string>>(result, "layers"),
            (std::vector<std::string>{"fc1", "fc2", "fc3"}));
  // 9 -> 8 -> 5 -> 3 with biases.
  const std::vector<int64_t> sizes{80, 45, 18};
  double of_layers = 0, of_parameters = 0;
  int64_t first = 0;
  for (size_t l = 0; l < sizes.size(); ++l) {
    const at::Tensor part = g.narrow(1, first, sizes[l]);
    const double g2 = sum_of(part.mean(0).square()), trace = sum_of((part - part.mean(0)).square()) / 30;
    EXPECT_NEAR(quantity(result, "layer_g2_finite").value[l], g2, 1e-12 * g2);
    EXPECT_NEAR(quantity(result, "layer_tr_sigma_finite").value[l], trace, 1e-12 * trace);
    EXPECT_NEAR(quantity(result, "layer_b_simple_finite").value[l], trace / g2, 1e-11 * trace / g2);
    const double gsnr = ratios(part).mean().item<double>();
    EXPECT_NEAR(quantity(result, "layer_gsnr_finite").value[l], gsnr, 1e-10 * gsnr);
    of_layers += gsnr / 3;
    of_parameters += gsnr * static_cast<double>(sizes[l]) / 143;
    first += sizes[l];
  }
  EXPECT_NEAR(value_of(result, "gsnr_layer_mean_finite"), of_layers, 1e-10 * of_layers);
  EXPECT_NEAR(value_of(result, "gsnr_finite"), of_parameters, 1e-10 * of_parameters);
}

TEST(GradientStatistics, ParametersWithoutGradientsAreLeftOutOfTheRatio) {
  Known known;
  Objective with_unused(std::make_shared<testing::LinearModel>(known.w.clone(), true), LossKind::mse, known.x,
                        known.labels, 10);
  const ProbeResult plain = run_probe("gradient_statistics", known.objective);
  const ProbeResult result = run_probe("gradient_statistics", with_unused, {"by_layer=true"});
  EXPECT_EQ(attribute<int64_t>(result, "gsnr_parameters"), 15);
  EXPECT_DOUBLE_EQ(value_of(result, "gsnr_finite"), value_of(plain, "gsnr_finite"));
  const Quantity& layers = quantity(result, "layer_gsnr_finite");
  EXPECT_EQ(layers.entry_status, (std::vector<ProbeStatus>{ProbeStatus::ok, ProbeStatus::not_resolved}));
  EXPECT_TRUE(std::isnan(layers.value[1]));
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "not resolved: layer_b_simple_finite, layer_g2_finite, layer_gsnr_finite");
}

TEST(GradientStatistics, AtAMinimumWhatNeedsTheMeanIsNotResolved) {
  Known known;
  const at::Tensor y = at::one_hot(known.labels, 3).to(at::kDouble);
  known.objective.parameters().scatter(at::linalg_pinv(known.x).matmul(y).t().flatten());
  const ProbeResult result = run_probe("gradient_statistics", known.objective, {}, 11, 200);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_FALSE(result.message.empty());
  for (const char* name : {"b_simple", "batch_bound", "coherence", "gsnr", "batch_bound_finite"})
    EXPECT_EQ(quantity(result, name).status, ProbeStatus::not_resolved) << name;
  EXPECT_LT(value_of(result, "coherence"), 0);  // as it comes
  EXPECT_EQ(quantity(result, "tr_sigma").status, ProbeStatus::ok);
  EXPECT_EQ(quantity(result, "gradient_norm_p50_finite").status, ProbeStatus::ok);
}

TEST(GradientStatistics, TooFewExamplesAreNotResolved) {
  Known few(7);
  const ProbeResult result = run_probe("gradient_statistics", few.objective, {"by_layer=true"});
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_EQ(result.message, "fewer than 8 examples");
  for (const Quantity& q : result.quantities) {
    EXPECT_EQ(q.status, ProbeStatus::not_resolved) << q.name;
    EXPECT_TRUE(std::isnan(q.value[0])) << q.name;
  }
}

TEST(GradientStatistics, WithoutTheRatioItsQuantitiesAreAbsent) {
  Known known;
  const ProbeResult result =
      run_probe("gradient_statistics", known.objective, {"signal_to_noise=false", "by_layer=true"});
  EXPECT_THROW(quantity(result, "gsnr"), std::out_of_range);
  EXPECT_THROW(quantity(result, "layer_gsnr_finite"), std::out_of_range);
  EXPECT_EQ(quantity(result, "layer_b_simple_finite").value[0], value_of(result, "b_simple_finite"));
}

TEST(GradientStatistics, IntervalsCoverTheSet) {
  Known set(400);
  const ProbeResult truth = run_probe("gradient_statistics", set.objective);
  const int64_t n = 100, repetitions = 300;
  const std::vector<std::string> names{
      "gsnr_finite",      "coherence_finite",         "batch_bound_finite",
      "diversity_finite", "gradient_norm_p50_finite", "gradient_norm_p95_finite"};
  std::map<std::string, int64_t> inside;
  at::Generator generator = make_generator(4);
  for (int64_t i = 0; i < repetitions; ++i) {
    const at::Tensor some = at::randperm(400, generator, at::kLong).narrow(0, 0, n);
    Objective part(std::make_shared<testing::LinearModel>(set.w.clone()), LossKind::mse,
                   set.x.index_select(0, some), set.labels.index_select(0, some), n);
    const ProbeResult result = run_probe("gradient_statistics", part, {}, 11, 400);
    for (const std::string& name : names) {
      const Quantity& q = quantity(result, name);
      inside[name] += q.ci_low[0] <= value_of(truth, name) && value_of(truth, name) <= q.ci_high[0];
    }
  }
  // 95 % of 300 is 285 with a standard deviation of 3.8; intervals by ranks are rounded outwards, and without
  // the factor 1 - n/N of a finite set all would hold 97.6 % or more.
  for (const std::string& name : names) {
    EXPECT_GE(inside[name], 270) << name;
    EXPECT_LE(inside[name], name.find("_p") == std::string::npos ? 296 : 300) << name;
  }
}

TEST(Percentile, OfAWholeSetIsExact) {
  const Estimate e = percentile_of({1, 2, 4, 8, 16}, 25, 5);
  EXPECT_DOUBLE_EQ(e.value, 2);
  EXPECT_EQ(e.error, 0);
  EXPECT_DOUBLE_EQ(percentile_of({1, 2, 4, 8, 16}, 60, 5).value, 4 + 0.4 * 4);
  EXPECT_EQ(e.low, e.high);
}

TEST(Percentile, IntervalIsFromRanks) {
  std::vector<double> sorted(100);
  std::iota(sorted.begin(), sorted.end(), 1.0);
  // 100 of very many: 50 -+ 9.8, so ranks 40 and 61.
  const Estimate median = percentile_of(sorted, 50, 1'000'000'000);
  EXPECT_DOUBLE_EQ(median.value, 50.5);
  EXPECT_DOUBLE_EQ(median.low, 40);
  EXPECT_DOUBLE_EQ(median.high, 61);
  EXPECT_NEAR(median.error, 21 / 3.919928, 1e-6);
  // 1 -+ 1.95 and 99 -+ 1.95 lie outside.
  EXPECT_TRUE(std::isinf(percentile_of(sorted, 1, 1'000'000'000).low));
  EXPECT_TRUE(std::isinf(percentile_of(sorted, 99, 1'000'000'000).high));
  // A finite set of 101: almost all of it is known.
  EXPECT_LT(percentile_of(sorted, 50, 101).high, 53);
}

}  // namespace
}  // namespace basin
