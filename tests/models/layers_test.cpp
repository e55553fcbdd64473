// Layers against arithmetic written out here, on plain arrays.
#include "models/layers.h"

#include <gtest/gtest.h>

#include "core/seed.h"
#include "models/loss.h"
#include "models/registry.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

// A model that is one norm layer.
struct NormOnly : Model {
  NormOnly(int64_t channels, NormKind kind, int64_t groups, at::Generator generator = make_generator(1))
      : norm(Builder{*this, generator}, "norm1", channels, kind, groups) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) override { return norm(x); }
  Norm norm;
};

at::Tensor random(std::vector<int64_t> sizes, uint64_t seed = 5) {
  at::Generator generator = make_generator(seed);
  return at::empty(sizes, at::kDouble).normal_(0.5, 2, generator);
}

struct Moments {
  double mean, variance;
  int64_t count;
};

// Over examples [first, last) and channels [low, high) of x [n, C, H, W].
Moments moments(const at::Tensor& x, int64_t first, int64_t last, int64_t low, int64_t high) {
  const auto a = x.accessor<double, 4>();
  std::vector<double> values;
  for (int64_t n = first; n < last; ++n)
    for (int64_t c = low; c < high; ++c)
      for (int64_t i = 0; i < x.size(2); ++i)
        for (int64_t j = 0; j < x.size(3); ++j) values.push_back(a[n][c][i][j]);
  double mean = 0, variance = 0;
  for (double v : values) mean += v / static_cast<double>(values.size());
  for (double v : values) variance += (v - mean) * (v - mean) / static_cast<double>(values.size());
  return {mean, variance, static_cast<int64_t>(values.size())};
}

double normalised(double value, const Moments& m) { return (value - m.mean) / std::sqrt(m.variance + 1e-5); }

// float64 with sums of at most 64 terms: some 1e-14.
constexpr double tolerance = 1e-12;

TEST(BatchNorm, GhostBatchesAreNormalisedByTheirOwnStatistics) {
  NormOnly model(2, NormKind::batch, 1);
  at::NoGradGuard no_grad;
  model.parameter_table()[0].tensor.copy_(at::tensor({2.0, -0.5}, at::kDouble));
  model.parameter_table()[1].tensor.copy_(at::tensor({0.25, 1.0}, at::kDouble));
  const at::Tensor x = random({7, 2, 2, 3});
  model.set_norm_mode(NormMode::ghost_batch, 3);
  const at::Tensor y = model.forward(x);
  const std::vector<double> weight{2.0, -0.5}, bias{0.25, 1.0};
  for (int64_t n = 0; n < 7; ++n) {
    const int64_t first = n / 3 * 3, last = std::min<int64_t>(first + 3, 7);
    for (int64_t c = 0; c < 2; ++c) {
      const double expected = normalised(x[n][c][1][2].item<double>(), moments(x, first, last, c, c + 1));
      EXPECT_NEAR(y[n][c][1][2].item<double>(),
                  weight[static_cast<size_t>(c)] * expected + bias[static_cast<size_t>(c)], tolerance);
    }
  }
  // Training leaves the running statistics alone.
  EXPECT_TRUE(at::equal(model.buffer_table()[0].second, at::zeros({2}, at::kDouble)));
  EXPECT_TRUE(at::equal(model.buffer_table()[1].second, at::ones({2}, at::kDouble)));
}

TEST(BatchNorm, AccumulateAveragesGhostBatchesByTheirExamples) {
  NormOnly model(2, NormKind::batch, 1);
  at::NoGradGuard no_grad;
  const at::Tensor x = random({7, 2, 2, 3});
  model.reset_running_statistics();
  model.set_norm_mode(NormMode::accumulate, 3);
  model.forward(x.narrow(0, 0, 6));  // two ghost batches of 3, then one of a single example
  model.forward(x.narrow(0, 6, 1));
  for (int64_t c = 0; c < 2; ++c) {
    double mean = 0, variance = 0;
    for (const auto& [first, last] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 6}, {6, 7}}) {
      const Moments m = moments(x, first, last, c, c + 1);
      const double share = static_cast<double>(last - first) / 7, count = static_cast<double>(m.count);
      mean += share * m.mean;
      variance += share * m.variance * count / (count - 1);
    }
    EXPECT_NEAR(model.buffer_table()[0].second[c].item<double>(), mean, tolerance);
    EXPECT_NEAR(model.buffer_table()[1].second[c].item<double>(), variance, tolerance);
    model.set_norm_mode(NormMode::running);
    EXPECT_NEAR(model.forward(x)[4][c][0][1].item<double>(),
                (x[4][c][0][1].item<double>() - mean) / std::sqrt(variance + 1e-5), tolerance);
  }
  const at::Tensor before = model.buffer_table()[0].second.clone();
  model.reset_running_statistics();
  model.set_norm_mode(NormMode::accumulate);
  model.forward(x * 10);
  EXPECT_FALSE(at::allclose(model.buffer_table()[0].second, before, 0.1, 0.1));
  EXPECT_NEAR(model.buffer_table()[0].second[0].item<double>(), 10 * moments(x, 0, 7, 0, 1).mean,
              10 * tolerance);
}

TEST(BatchNorm, OneExampleOfALinearLayerIsFinite) {
  NormOnly model(4, NormKind::batch, 1);
  model.set_norm_mode(NormMode::accumulate);
  at::NoGradGuard no_grad;
  const at::Tensor y = model.forward(random({1, 4}));
  // y = x scale + shift with scale = 1/sqrt(1e-5) = 316, each rounded.
  EXPECT_LT(y.abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(at::equal(model.buffer_table()[1].second, at::zeros({4}, at::kDouble)));
}

TEST(GroupNorm, StatisticsByExampleAndGroup) {
  NormOnly model(4, NormKind::group, 2);
  const at::Tensor x = random({3, 4, 2, 2});
  const at::Tensor y = model.forward(x);
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t c = 0; c < 4; ++c) {
      const double expected =
          normalised(x[n][c][1][0].item<double>(), moments(x, n, n + 1, c / 2 * 2, c / 2 * 2 + 2));
      EXPECT_NEAR(y[n][c][1][0].item<double>(), expected, tolerance);
    }
  }
}

// A model that is dropout alone.
struct DropoutOnly : Model {
  explicit DropoutOnly(double p, at::Generator generator = make_generator(1))
      : dropout(Builder{*this, generator}, p) {
    seed_dropout(2);
    set_dropout_place({0, 0});
  }
  at::Tensor forward(const at::Tensor& x) override { return dropout(x); }
  Dropout dropout;
};

TEST(Dropout, ZeroesAShareAndScalesTheRest) {
  DropoutOnly model(0.3);
  EXPECT_TRUE(model.has_dropout());
  EXPECT_FALSE(DropoutOnly(0).has_dropout());
  const int64_t n = 40000;
  const at::Tensor y = model.forward(at::ones({n}, at::kDouble));
  const double zeros = y.eq(0).sum().item<double>();
  // Five standard deviations of a binomial; the seed is fixed.
  EXPECT_NEAR(zeros / n, 0.3, 5 * std::sqrt(0.3 * 0.7 / n));
  // The mask is divided in the type of the input.
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.7, 1e-12);
  EXPECT_NEAR(y.sum().item<double>(), (n - zeros) / 0.7, 1e-6);
  model.eval();
  EXPECT_TRUE(at::equal(model.forward(y), y));
}

TEST(Dropout, MasksDontDependOnHowABatchIsCut) {
  const at::Tensor x = at::ones({100, 7}, at::kFloat);
  DropoutOnly whole(0.5);
  const at::Tensor expected = whole.forward(x);
  for (const int64_t size : {1, 16, 33}) {
    DropoutOnly cut(0.5);
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < 100; first += size) {
      cut.set_dropout_place({0, first});
      parts.push_back(cut.forward(x.narrow(0, first, std::min<int64_t>(size, 100 - first))));
    }
    EXPECT_TRUE(at::equal(at::cat(parts), expected)) << size;
  }
}

TEST(Dropout, EachLayerHasItsOwnKeyFromTheMasterSeed) {
  const auto model = testing::make_test_model("keskar_c1", {}, {}, 5, at::kFloat);
  EXPECT_EQ(model->dropout_key(0), derive_seed(5, "dropout", 0));
  EXPECT_EQ(model->dropout_key(1), derive_seed(5, "dropout", 1));
  EXPECT_THROW(model->dropout_key(2), std::out_of_range);
}

TEST(Dropout, IsTheMaskOfItsPlaceWhateverTheMemoryFormat) {
  DropoutOnly model(0.5);
  model.set_dropout_place({4, 10});
  const at::Tensor x = random({6, 3, 4, 5}),
                   kept = dropout_mask(x.sizes(), 0.5, model.dropout_key(0), {4, 10});
  EXPECT_TRUE(at::equal(model.forward(x), 2 * x * kept));
  EXPECT_TRUE(at::equal(model.forward(channels_last(x)), 2 * x * kept));
}

TEST(Dropout, RefusesToTrainWithoutAPlace) {
  const auto model = testing::make_test_model("keskar_c1", {}, {}, 5, at::kFloat);
  model->train();
  EXPECT_THROW(model->forward(at::zeros({1, 3, 32, 32})), c10::Error);
}

TEST(Activations, AreTheNamedFunctions) {
  const at::Tensor x = at::tensor({-1.5, 0.0, 0.75}, at::kDouble);
  const auto at_each = [&](const std::string& name, double (*f)(double)) {
    const at::Tensor y = activate(activation_named(name), x.clone());
    for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i].item<double>(), f(x[i].item<double>()), 1e-15) << name;
  };
  at_each("relu", [](double v) { return v > 0 ? v : 0; });
  at_each("tanh", [](double v) { return std::tanh(v); });
  at_each("softplus", [](double v) { return std::log1p(std::exp(v)); });
  at_each("gelu", [](double v) { return v * (1 + std::erf(v / std::sqrt(2.0))) / 2; });
}

// x Phi(x), Phi(x) + x phi(x), phi(x) (2 - x^2).
TEST(Activations, GeluHasBothDerivatives) {
  const at::Tensor x = at::tensor({-2.5, -0.6, 0.0, 0.75, 3.0}, at::kDouble).requires_grad_(true);
  const at::Tensor y = activate(Activation::gelu, x);
  const at::Tensor first = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  const at::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = x[i].item<double>();
    const double cumulative = (1 + std::erf(v / std::sqrt(2.0))) / 2;
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
    EXPECT_NEAR(first[i].item<double>(), cumulative + v * density, 1e-14) << v;
    EXPECT_NEAR(second[i].item<double>(), density * (2 - v * v), 1e-14) << v;
  }
}

TEST(Convolution, DiracStartCopiesChannelsAndLeavesTheOthersAsTheyWere) {
  struct ConvOnly : Model {
    ConvOnly(const Conv2d::Shape& shape, at::Generator generator)
        : conv(Builder{*this, generator}, "conv1", shape) {}
    at::Tensor forward(const at::Tensor& x) override { return conv(x); }
    Conv2d conv;
  };
  const auto weight = [](const Conv2d::Shape& shape) {
    return ConvOnly(shape, make_generator(6)).parameter_table().front().tensor.detach();
  };
  Conv2d::Shape wide{2, 5, 3}, narrow{5, 2, 3};
  const at::Tensor plain = weight(wide);
  wide.dirac = narrow.dirac = true;
  const at::Tensor start = weight(wide);
  at::Tensor identity = at::zeros({2, 2, 3, 3}, at::kFloat);
  identity[0][0][1][1] = identity[1][1][1][1] = 1;
  EXPECT_TRUE(at::equal(start.narrow(0, 0, 2), identity));
  EXPECT_TRUE(at::equal(start.narrow(0, 2, 3), plain.narrow(0, 2, 3)));
  EXPECT_EQ(weight(narrow).sum().item<double>(), 2) << "two outputs, each the input of its number";
  EXPECT_EQ(weight(narrow)[1][1][1][1].item<double>(), 1);
}

// One parameter, and everything as with a scale of 1.
TEST(BatchNorm, WithoutALearnedScaleHasABiasAlone) {
  struct Plain : Model {
    explicit Plain(const Norm::Variant& variant, at::Generator generator = make_generator(1))
        : norm(Builder{*this, generator}, "norm1", 2, NormKind::batch, 1, variant) {
      to(at::kDouble);
    }
    at::Tensor forward(const at::Tensor& x) override { return norm(x); }
    Norm norm;
  };
  const double eps = 0.3;
  Plain model({/*learned_scale=*/false, eps});
  ASSERT_EQ(model.parameter_table().size(), 1U);
  EXPECT_EQ(model.parameter_table()[0].kind, ParameterKind::norm_bias);
  const at::NoGradGuard no_grad;
  model.parameter_table()[0].tensor.copy_(at::tensor({0.25, 1.0}, at::kDouble));
  model.set_norm_mode(NormMode::ghost_batch);
  const at::Tensor x = random({5, 2, 2, 3});
  const at::Tensor y = model.forward(x);
  for (int64_t c = 0; c < 2; ++c) {
    const Moments m = moments(x, 0, 5, c, c + 1);
    EXPECT_NEAR(y[3][c][1][0].item<double>(),
                (x[3][c][1][0].item<double>() - m.mean) / std::sqrt(m.variance + eps) + (c == 0 ? 0.25 : 1.0),
                tolerance);
  }
}

// The bounds and variances of the documented initialisations, on layers large enough to see them.
TEST(Initialisation, HasTheDocumentedSpread) {
  const auto uniform =
      testing::make_test_model("mlp", {"hidden=[400]"}, {}, 1, at::kDouble)->parameter_table();
  const double bound = 1 / std::sqrt(3072.0);
  for (const ParameterInfo& p : {uniform[0], uniform[1]}) {
    const double largest = p.tensor.abs().max().item<double>();
    EXPECT_LE(largest, bound * (1 + 1e-6)) << p.name;  // drawn in float32
    EXPECT_GT(largest, 0.98 * bound) << p.name;
  }
  const auto normal = testing::make_test_model("resnet20", {}, {}, 1, at::kDouble)->parameter_table();
  const auto plain =
      testing::make_test_model("resnet20", {"norm=none"}, {}, 1, at::kDouble)->parameter_table();
  const auto deviation = [](const std::vector<ParameterInfo>& table, const std::string& name) {
    for (const ParameterInfo& p : table) {
      if (p.name == name) return p.tensor.std().item<double>();
    }
    return std::nan("");
  };
  // 36,864 draws: a standard deviation is known to 0.4 %; 2 % is five times that.
  const double he = std::sqrt(2.0 / (64 * 9));
  EXPECT_NEAR(deviation(normal, "stage3.block2.conv2.weight") / he, 1, 0.02);
  EXPECT_NEAR(deviation(plain, "stage3.block2.conv1.weight") / he, 1, 0.02);
  EXPECT_NEAR(deviation(plain, "stage3.block2.conv2.weight") / he, 1.0 / 3, 0.02);
}

TEST(Loss, ClosedForms) {
  const at::Tensor logits = at::tensor({1.0, -2.0, 0.5, 0.0, 3.0, -1.0}, at::kDouble).view({2, 3});
  const at::Tensor labels = at::tensor({2, 0}, at::kLong);
  const at::Tensor entropy = example_losses(loss_kind("cross_entropy"), logits, labels);
  EXPECT_NEAR(entropy[0].item<double>(), std::log(std::exp(1.0) + std::exp(-2.0) + std::exp(0.5)) - 0.5,
              1e-14);
  EXPECT_NEAR(entropy[1].item<double>(), std::log(1 + std::exp(3.0) + std::exp(-1.0)), 1e-14);
  // Smoothed: of the label 1 - s, and s/3 of each class.
  const at::Tensor smoothed = smoothed_losses(logits, labels, 0.3);
  EXPECT_NEAR(smoothed[0].item<double>(), entropy[0].item<double>() + 0.5 - (0.7 * 0.5 + 0.1 * (1 - 2 + 0.5)),
              1e-14);
  EXPECT_NEAR(smoothed[1].item<double>(), entropy[1].item<double>() - 0.1 * (3 - 1), 1e-14);
  EXPECT_TRUE(smoothed_losses(logits, labels, 0).equal(entropy));
  const at::Tensor squares = example_losses(loss_kind("mse"), logits, labels);
  EXPECT_NEAR(squares[0].item<double>(), (1 + 4 + 0.25) / 2, 1e-14);
  EXPECT_NEAR(squares[1].item<double>(), (1 + 9 + 1) / 2.0, 1e-14);
}

// Without norm, ResNet-20's logits must neither vanish nor explode with depth.
TEST(ResNet20, StartsWithActivationsOfOrderOneWithoutNorm) {
  const auto model = testing::make_test_model("resnet20", {"norm=none"}, {}, 1, at::kFloat);
  const double spread = model->forward(testing::tiny_batch({}, 8, 1, at::kFloat).images).std().item<double>();
  EXPECT_GT(spread, 0.1);
  EXPECT_LT(spread, 10);
}

TEST(MakeModel, ConvolutionsAreChannelsLastAndTypesFollow) {
  const auto model = testing::make_test_model("keskar_c1", {}, {}, 1, at::kDouble);
  for (const ParameterInfo& p : model->parameter_table()) {
    EXPECT_EQ(p.tensor.scalar_type(), at::kDouble);
    if (p.tensor.dim() == 4) {
      EXPECT_TRUE(p.tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << p.name;
    }
  }
  for (const auto& [name, buffer] : model->buffer_table())
    EXPECT_EQ(buffer.scalar_type(), at::kDouble) << name;
}

}  // namespace
}  // namespace basin
