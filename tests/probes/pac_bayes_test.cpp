#include "probes/pac_bayes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/seed.h"
#include "probes/estimators/pac_bayes_bound.h"
#include "probes/estimators/sigma_search.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/analytic_models.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;

/// Two classes told apart by a linear network that is right everywhere: with Gaussian noise on its weights
/// example i is right with probability Phi(margin_i / s_i), s_i^2 the variance of the noise on its margin.
struct TwoClasses {
  at::Tensor x, w, labels;

  explicit TwoClasses(int64_t features = 6) {
    at::Generator generator = make_generator(1);
    x = at::randn({60, features}, generator, at::kDouble);
    w = at::randn({2, features}, generator, at::kDouble);
    labels = x.matmul(w.t()).argmax(1);
  }

  Objective objective() const {
    return Objective(std::make_shared<testing::LinearModel>(w.clone()), LossKind::cross_entropy, x, labels,
                     60);
  }
  double drop(const at::Tensor& variance) const {
    const at::Tensor logits = x.matmul(w.t());
    const at::Tensor margin = std::get<0>(logits.max(1)) - std::get<0>(logits.min(1));
    const at::Tensor spread = x.square().matmul(variance.sum(0)).sqrt();
    return (0.5 * at::erfc(margin / spread / std::sqrt(2.0))).mean().item<double>();
  }
  double plain_drop(double sigma) const { return drop(at::full_like(w, sigma * sigma)); }
  double magnitude_drop(double sigma) const { return drop(w.square() * sigma * sigma + 1e-6); }

  template <class Drop>
  static double root(const Drop& drop) {
    double low = 1e-6, high = 100;
    for (int i = 0; i < 200; ++i) {
      const double middle = std::sqrt(low * high);
      (drop(middle) > 0.1 ? high : low) = middle;
    }
    return low;
  }
  double sigma() const {
    return root([&](double s) { return plain_drop(s); });
  }
  double magnitude() const {
    return root([&](double s) { return magnitude_drop(s); });
  }
};

TEST(PacBayes, SigmaOfALinearNetworkInClosedForm) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  ASSERT_EQ(objective.accuracy(), 1);
  const ProbeResult result = run_probe("pac_bayes", objective, {"draws=500", "tolerance=0.001"}, 5, 1000,
                                       nullptr, problem.w.flatten());
  ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
  const Quantity &sigma = quantity(result, "sigma"), &magnitude = quantity(result, "sigma_magnitude");
  for (const auto& [found, expected] :
       {std::pair{sigma, problem.sigma()}, std::pair{magnitude, problem.magnitude()}}) {
    EXPECT_NEAR(found.value[0], expected, 4 * found.uncertainty[0]) << found.name;
    EXPECT_LT(found.uncertainty[0], 0.05 * expected) << found.name;  // 500 draws of 60 examples
    EXPECT_LT(found.ci_low[0], found.value[0]);
    EXPECT_GT(found.ci_high[0], found.value[0]);
  }
  const Quantity& inverse = quantity(result, "inverse_sigma2");
  const double s = sigma.value[0];
  EXPECT_NEAR(inverse.value[0], 1 / (s * s), 1e-12 / (s * s));
  // A convex function's mean slope over the interval is above that at its middle.
  const double low = sigma.ci_low[0], high = sigma.ci_high[0];
  const double mean_slope = (1 / (low * low) - 1 / (high * high)) / (high - low);
  EXPECT_GT(mean_slope, 2 / (s * s * s));
  EXPECT_NEAR(inverse.uncertainty[0], mean_slope * sigma.uncertainty[0], 1e-9 * inverse.uncertainty[0]);
  EXPECT_NEAR(inverse.ci_low[0], std::pow(sigma.ci_high[0], -2), 1e-9 * inverse.value[0]);
  EXPECT_NEAR(inverse.ci_high[0], std::pow(sigma.ci_low[0], -2), 1e-9 * inverse.value[0]);
}

TEST(PacBayes, IntervalsCoverSigmaByRepetition) {
  const TwoClasses problem(40);
  Objective objective = problem.objective();
  const double expected = problem.sigma();
  int covered = 0;
  std::vector<double> sigmas, errors;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ProbeResult result =
        run_probe("pac_bayes", objective, {"forms=plain"}, seed, 1000, nullptr, problem.w.flatten());
    const Quantity& sigma = quantity(result, "sigma");
    ASSERT_EQ(sigma.status, ProbeStatus::ok);
    covered += sigma.ci_low[0] <= expected && expected <= sigma.ci_high[0];
    sigmas.push_back(sigma.value[0]);
    if (std::isfinite(sigma.uncertainty[0])) errors.push_back(sigma.uncertainty[0]);
  }
  // 95 % of 200; three binomial standard deviations are 9.
  EXPECT_GE(covered, 181);
  EXPECT_LE(covered, 199);
  const double scatter = at::tensor(sigmas, at::kDouble).std().item<double>();
  const double stated = at::tensor(errors, at::kDouble).median().item<double>();
  EXPECT_GT(stated, 0.6 * scatter);
  EXPECT_LT(stated, 1.6 * scatter);
}

TEST(PacBayes, RgmPutsTheSquareWhereTheDeviationBelongs) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const ProbeResult result =
      run_probe("pac_bayes", objective, {"compat=rgm", "draws=500"}, 5, 1000, nullptr, problem.w.flatten());
  ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
  // Its sigma^2 is the deviation. It stops where the drop is within 0.01 of 0.1, so the deviation is between
  // those of drops of 0.09 and 0.11, less what 500 draws scatter.
  const double found = std::pow(quantity(result, "sigma").value[0], 2);
  EXPECT_GT(problem.plain_drop(found), 0.085);
  EXPECT_LT(problem.plain_drop(found), 0.115);
  const double of_magnitude = std::pow(quantity(result, "sigma_magnitude").value[0], 2);
  const at::Tensor deviation = problem.w.square() * of_magnitude + 1e-6;
  EXPECT_GT(problem.drop(deviation.square()), 0.085);
  EXPECT_LT(problem.drop(deviation.square()), 0.115);
  EXPECT_EQ(quantity(result, "sigma").definition, "pac-bayes-sigma-rgm");
  EXPECT_EQ(quantity(result, "pac_bound").definition, "pac-bayes-bound-rgm");
  EXPECT_LE(attribute<std::vector<double>>(result, "sigma_looks").size(), 2 + 3 * 15u);
}

TEST(PacBayes, BoundFromTheInitialWeights) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const at::Tensor start = problem.w.flatten() + 0.25;  // 12 weights, each 0.25 away
  const ProbeResult result = run_probe("pac_bayes", objective, {}, 5, 1000, nullptr, start);
  const double s = quantity(result, "sigma").value[0];
  const double expected = std::sqrt((12 * 0.0625 / (4 * s * s) + std::log(1000 / s) + 10) / 1000);
  EXPECT_NEAR(quantity(result, "pac_bound").value[0], expected, 1e-12);
  EXPECT_NEAR(attribute<double>(result, "distance_from_start"), std::sqrt(12 * 0.0625), 1e-14);
  EXPECT_GT(quantity(result, "pac_bound").ci_high[0], expected);
  EXPECT_LT(quantity(result, "pac_bound").ci_low[0], expected);
}

/// KL of N(0, s^2) from N(d, lambda^2), summed: the textbook's, with its lambda^2 found by search.
double least_divergence(const std::vector<double>& variances, const std::vector<double>& distances) {
  const auto divergence = [&](double log_prior) {
    double sum = 0;
    for (size_t i = 0; i < variances.size(); ++i)
      sum += 0.5 * (log_prior - std::log(variances[i]) - 1 +
                    (variances[i] + distances[i] * distances[i]) / std::exp(log_prior));
    return sum;
  };
  double low = -40, high = 40;
  for (int i = 0; i < 300; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (divergence(a) < divergence(b) ? high : low) = divergence(a) < divergence(b) ? b : a;
  }
  return divergence(low);
}

TEST(PacBayes, MagnitudeBoundsAreThoseOfTheNearestGaussianPrior) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const at::Tensor w = problem.w.flatten();
  const at::Tensor start = w - at::linspace(-0.4, 1.3, 12, at::kDouble);
  const ProbeResult result = run_probe("pac_bayes", objective, {"eps=0.02"}, 5, 1000, nullptr, start);
  ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
  const double s = quantity(result, "sigma_magnitude").value[0];
  std::vector<double> variances, from_start, from_zero;
  for (int64_t i = 0; i < 12; ++i) {
    from_zero.push_back(w[i].item<double>());
    from_start.push_back((w - start)[i].item<double>());
    variances.push_back(s * s * from_zero.back() * from_zero.back() + 4e-4);
  }
  // A search by thirds sees a minimum's place to the root of the rounding, its value to the rounding.
  for (const auto& [name, distances] :
       {std::pair{"pac_bound_magnitude", from_start}, std::pair{"pac_bound_magnitude_origin", from_zero}}) {
    const double kl = least_divergence(variances, distances);
    const Quantity& bound = quantity(result, name);
    EXPECT_NEAR(bound.value[0], std::sqrt((kl / 2 + std::log(1000 / s) + 10) / 1000), 1e-9) << name;
    EXPECT_LT(bound.ci_low[0], bound.value[0]) << name;
    EXPECT_GT(bound.ci_high[0], bound.value[0]) << name;
    EXPECT_GT(bound.uncertainty[0], 0) << name;
  }
}

TEST(PacBayes, RgmHasDistancesWhereTheNoiseBelongs) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const at::Tensor w = problem.w.flatten(), away = at::linspace(-0.4, 1.3, 12, at::kDouble);
  const ProbeResult result = run_probe("pac_bayes", objective, {"compat=rgm"}, 5, 1000, nullptr, w - away);
  const double s = quantity(result, "sigma_magnitude").value[0];
  const auto expected = [&](const at::Tensor& of_prior) {
    const double prior = 1e-6 + (s * s + 1) * of_prior.square().sum().item<double>() / 12;
    double sum = 0;
    for (int64_t i = 0; i < 12; ++i)
      sum += std::log(prior / (1e-6 + s * s * std::pow(away[i].item<double>(), 2)));
    return std::sqrt((sum / 4 + std::log(1000 / s) + 10) / 1000);
  };
  EXPECT_NEAR(quantity(result, "pac_bound_magnitude").value[0], expected(away), 1e-12);
  EXPECT_NEAR(quantity(result, "pac_bound_magnitude_origin").value[0], expected(w), 1e-12);
  EXPECT_EQ(quantity(result, "pac_bound_magnitude").definition, "pac-bayes-bound-magnitude-rgm");
}

/// With a bias, which isn't among that tool's weights.
class BiasedLinear final : public Model {
 public:
  explicit BiasedLinear(const at::Tensor& weight)
      : weight_(add_parameter("fc", "weight", ParameterKind::weight, weight.clone())),
        bias_(add_parameter("fc", "bias", ParameterKind::bias,
                            at::full({weight.size(0)}, 0.01, weight.options()))) {}
  at::Tensor forward(const at::Tensor& images) override {
    return linear_map(images.flatten(1), weight_, bias_);
  }

 private:
  at::Tensor weight_, bias_;
};

TEST(PacBayes, RgmTakesTheWeightsAlone) {
  const TwoClasses problem;
  Objective objective(std::make_shared<BiasedLinear>(problem.w), LossKind::cross_entropy, problem.x,
                      problem.labels, 60);
  const at::Tensor away = at::linspace(-0.4, 1.3, 14, at::kDouble);
  const at::Tensor start = objective.parameters().gather() - away;
  const ProbeResult result = run_probe("pac_bayes", objective, {"compat=rgm"}, 5, 1000, nullptr, start);
  const double s = quantity(result, "sigma").value[0], m = quantity(result, "sigma_magnitude").value[0];
  const at::Tensor of_weights = away.narrow(0, 0, 12).square();
  const double plain = of_weights.sum().item<double>() / (2 * s * s);
  const double prior = 1e-6 + (m * m + 1) * problem.w.square().mean().item<double>();
  const double kl = 0.5 * (std::log(prior) - (of_weights * m * m + 1e-6).log()).sum().item<double>();
  const auto bound = [](double divergence, double sigma) {
    return std::sqrt((divergence / 2 + std::log(1000 / sigma) + 10) / 1000);
  };
  EXPECT_NEAR(quantity(result, "pac_bound").value[0], bound(plain, s), 1e-12);
  EXPECT_NEAR(quantity(result, "pac_bound_magnitude_origin").value[0], bound(kl, m), 1e-12);
}

// Draws that gain and lose alike: |mean change| is small where the mean |change| is not.
TEST(PacBayes, RgmTakesTheMeanChange) {
  const TwoClasses problem;
  Objective objective(std::make_shared<testing::LinearModel>(at::zeros_like(problem.w)),
                      LossKind::cross_entropy, problem.x, problem.labels, 60);
  const auto last_drop = [&](const std::string& compat) {
    const ProbeResult result = run_probe(
        "pac_bayes", objective, {"forms=plain", "compat=" + compat, "draws=200", "iterations=1"}, 5, 1000);
    return attribute<std::vector<double>>(result, "sigma_drops").back();
  };
  // Any direction of a random plane is as right as it is wrong, whatever its length.
  const double share = objective.accuracy();
  EXPECT_GT(last_drop("none"), 3 * std::abs(last_drop("rgm") - std::abs(share - 0.5)) + 0.05);
}

// Half of the weights 0 and a prior at a distance d w: the magnitude bound is least near sigma = 1.4 d, which
// lies inside of sigma's interval.
TEST(PacBayes, ABoundThatTurnsHoldsItsValueInItsInterval) {
  TwoClasses problem;
  problem.w.narrow(1, 0, 3).zero_();
  problem.labels = problem.x.matmul(problem.w.t()).argmax(1);
  Objective objective = problem.objective();
  const at::Tensor w = problem.w.flatten();
  const auto measured = [&](double distance) {
    return run_probe("pac_bayes", objective, {"draws=3"}, 5, 1000, nullptr, (1 - distance) * w);
  };
  const double s = quantity(measured(1), "sigma_magnitude").value[0];
  int turned = 0;
  for (const double share : {0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9}) {
    const ProbeResult result = measured(share * s);
    const Quantity &sigma = quantity(result, "sigma_magnitude"),
                   &bound = quantity(result, "pac_bound_magnitude");
    ASSERT_EQ(sigma.status, ProbeStatus::ok) << share;
    EXPECT_LE(bound.ci_low[0], bound.value[0]) << share;
    EXPECT_GE(bound.ci_high[0], bound.value[0]) << share;
    const auto at = [&](double x) {
      return pac_bayes_bound(magnitude_divergence(w, share * s * w, x, 1e-3), x, 1000);
    };
    const auto [low, high] = std::minmax({at(sigma.ci_low[0]), at(sigma.ci_high[0])});
    EXPECT_LE(bound.ci_low[0], low) << share;
    EXPECT_GE(bound.ci_high[0], high) << share;
    EXPECT_GE(bound.uncertainty[0], sigma.uncertainty[0] * (bound.ci_high[0] - bound.ci_low[0]) /
                                        (sigma.ci_high[0] - sigma.ci_low[0]) * (1 - 1e-12))
        << share;
    turned += bound.value[0] < low || bound.value[0] > high;
  }
  EXPECT_GT(turned, 0);
}

TEST(PacBayes, WithoutInitialWeightsTheBoundIsNotResolved) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const ProbeResult result = run_probe("pac_bayes", objective, {}, 5);
  EXPECT_EQ(quantity(result, "pac_bound").status, ProbeStatus::not_resolved);
  EXPECT_TRUE(std::isnan(quantity(result, "pac_bound").value[0]));
  EXPECT_EQ(quantity(result, "sigma").status, ProbeStatus::ok);
  EXPECT_EQ(quantity(result, "pac_bound_magnitude").status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(result, "pac_bound_magnitude_origin").status, ProbeStatus::ok);
  EXPECT_EQ(result.status, ProbeStatus::not_resolved);
  EXPECT_NE(result.message.find("initial weights"), std::string::npos) << result.message;
}

TEST(PacBayes, AnEndOfTheRangeIsNoValue) {
  const TwoClasses problem;
  Objective objective = problem.objective();
  const double sigma = problem.sigma();
  for (const auto& [range, reason] : {std::pair{fmt::format("sigma_max={}", sigma / 3), "up to sigma"},
                                      std::pair{fmt::format("sigma_min={}", sigma * 3), "already"}}) {
    const ProbeResult result = run_probe("pac_bayes", objective, {"forms=plain", "sigma_max=20", range}, 5);
    for (const std::string name : {"sigma", "inverse_sigma2", "pac_bound"}) {
      EXPECT_EQ(quantity(result, name).status, ProbeStatus::not_resolved) << name << range;
      EXPECT_TRUE(std::isnan(quantity(result, name).value[0])) << name << range;
    }
    EXPECT_NE(result.message.find(reason), std::string::npos) << result.message;
  }
}

TEST(PacBayes, RefusesARangeThatIsNone) {
  PacBayesOptions options;
  options.sigma_min = 3;
  EXPECT_THROW(make_pac_bayes(options), ConfigError);
  options.sigma_min = 0;
  EXPECT_THROW(make_pac_bayes(options), ConfigError);
  options.bisection = "arithmetic";
  EXPECT_NO_THROW(make_pac_bayes(options));
  options.drop = "mean";  // one definition or the other
  EXPECT_THROW(make_pac_bayes(options), ConfigError);
}

SigmaSearch narrow() {
  SigmaSearch search;
  search.tolerance = 1e-6;
  return search;
}

TEST(SigmaSearch, FindsTheCrossingAndWhereTheIntervalHoldsTheTarget) {
  // Drop sigma, known to +- 0.02 times t: sigma = 0.1 and 0.1 -+ 0.02 t.
  const DropFunction drop = [](double sigma) { return SampleMean{sigma, 0.02, 10}; };
  const SigmaFound found = search_sigma(drop, narrow());
  const double t = student_quantile(9);
  EXPECT_EQ(found.status, ProbeStatus::ok);
  EXPECT_NEAR(found.sigma, 0.1, 1e-6);
  EXPECT_NEAR(found.ci_low, 0.1 - 0.02 * t, 1e-6);
  EXPECT_NEAR(found.ci_high, 0.1 + 0.02 * t, 1e-6);
  EXPECT_NEAR(found.standard_error, 0.02, 1e-6);
  EXPECT_TRUE(std::is_sorted(found.sigmas.begin(), found.sigmas.end()));
  EXPECT_EQ(found.sigmas.size(), found.drops.size());
}

TEST(SigmaSearch, EndsOfTheIntervalBeyondTheRangeAreOpen) {
  const DropFunction drop = [](double sigma) { return SampleMean{sigma, 0.5, 10}; };
  SigmaSearch search = narrow();
  search.high = 0.11;
  const SigmaFound found = search_sigma(drop, search);
  EXPECT_NEAR(found.sigma, 0.1, 1e-6);
  EXPECT_EQ(found.ci_low, 0);
  EXPECT_EQ(found.ci_high, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(found.standard_error));
}

TEST(SigmaSearch, StopsAtItsCapAndSaysSo) {
  int looks = 0;
  const DropFunction drop = [&](double sigma) {
    ++looks;
    return SampleMean{sigma, 0, 10};
  };
  SigmaSearch search = narrow();
  search.iterations = 4;
  const SigmaFound found = search_sigma(drop, search);
  EXPECT_EQ(found.status, ProbeStatus::not_converged);
  EXPECT_FALSE(found.reason.empty());
  EXPECT_LE(looks, 2 + 3 * 4);
  EXPECT_NEAR(std::log(found.sigma / 0.1), 0, std::log(2e4) / 16);  // in a bracket of a sixteenth
}

}  // namespace
}  // namespace basin
