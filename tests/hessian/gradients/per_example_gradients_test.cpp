// Against one backward pass of autograd per example, which knows nothing of layers.
#include "hessian/gradients/per_example_gradients.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/seed.h"
#include "hessian/objective.h"
#include "models/layers.h"
#include "models/registry.h"
#include "tests/support/analytic_models.h"
#include "tests/support/message_of.h"
#include "tests/support/script_nets.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::tiny_batch;
using testing::tiny_image_shape;
using testing::tiny_input_shape;
using testing::tiny_loss;
using testing::tiny_model;

// float64: sums of up to some thousand products in another order.
constexpr double kGradientRounding = 1e-10;

/// 0 where both are.
double relative(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-300);
}

at::Tensor numbers(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, make_generator(seed), at::kDouble);
}

/// A norm layer's start (weight 1, bias 0, mean 0, variance 1) is special; these aren't.
void leave_the_start(Model& model) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 20;
  for (const ParameterInfo& p : model.parameter_table())
    at::Tensor(p.tensor).add_(numbers(p.tensor.sizes(), ++seed).mul_(0.2));
  for (const auto& [name, buffer] : model.buffer_table()) {
    if (name.find("running") == std::string::npos) continue;
    at::Tensor(buffer).add_(at::rand(buffer.sizes(), make_generator(++seed), at::kDouble).mul_(0.5));
  }
}

/// The gradients themselves, [n, parameters].
at::Tensor gradients_one_by_one(Objective& objective) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < objective.examples(); ++i)
    rows.push_back(objective.gradient_over(at::full({1}, i, at::kLong)));
  return at::stack(rows);
}

/// [n, parameters] -> [n, tensors]
at::Tensor by_tensor(const Objective& objective, const at::Tensor& values) {
  std::vector<at::Tensor> columns;
  int64_t first = 0;
  for (const ParameterInfo& p : objective.parameters().parameters()) {
    columns.push_back(values.narrow(1, first, p.tensor.numel()).sum(1));
    first += p.tensor.numel();
  }
  return at::stack(columns, 1);
}

void expect_brute_force(Objective& objective, const std::string& about) {
  const at::Tensor g = gradients_one_by_one(objective);
  PerExampleGradients gradients(objective);
  const ExampleSums sums = gradients.sums(), with_squares = gradients.sums(/*squares=*/true);
  EXPECT_FALSE(sums.mean_square.defined());
  for (const ExampleSums& found : {sums, with_squares}) {
    const at::Tensor expected = by_tensor(objective, g.square());
    for (int64_t t = 0; t < expected.size(1); ++t) {
      const std::string& name = objective.parameters().parameters()[t].name;
      EXPECT_LT(relative(found.squared_norms.select(1, t), expected.select(1, t)), kGradientRounding)
          << about << name;
    }
    EXPECT_LT(relative(found.mean, g.mean(0)), kGradientRounding) << about;
  }
  EXPECT_LT(relative(with_squares.mean_square, g.square().mean(0)), kGradientRounding) << about;

  const at::Tensor a = numbers({g.size(1)}, 5), b = numbers({g.size(1)}, 6);
  const std::vector<at::Tensor> products = gradients.products({{a}, {a, b}});
  EXPECT_LT(relative(products[0], by_tensor(objective, g * a)), kGradientRounding) << about;
  EXPECT_LT(relative(products[1], by_tensor(objective, g * a + g.square() * b)), kGradientRounding) << about;
}

class PerExampleGradientsTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, PerExampleGradientsTest, ::testing::ValuesIn(testing::own_models()),
                         [](const auto& info) { return info.param; });

TEST_P(PerExampleGradientsTest, AreThoseOfOneBackwardPassEach) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 7);
  std::vector<LossKind> losses{tiny_loss(GetParam())};
  if (losses.front() == LossKind::cross_entropy) losses.push_back(LossKind::mse);
  const std::set<std::vector<std::string>> activations{{}, testing::rectified(GetParam())};
  for (const std::vector<std::string>& variant : testing::variants_of(GetParam())) {
    for (const std::vector<std::string>& activation : activations) {
      std::vector<std::string> settings = variant;
      settings.insert(settings.end(), activation.begin(), activation.end());
      const auto model = tiny_model(GetParam(), settings);
      leave_the_start(*model);
      for (const LossKind loss : losses) {
        Objective objective(model, loss, batch.images, batch.labels, 3);
        expect_brute_force(objective, fmt::format("{} ", settings));
      }
    }
  }
}

TEST_P(PerExampleGradientsTest, DoNotDependOnTheMicroBatch) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 9);
  const auto model = tiny_model(GetParam());
  leave_the_start(*model);
  Objective whole(model, tiny_loss(GetParam()), batch.images, batch.labels, 100);
  const ExampleSums expected = PerExampleGradients(whole).sums(true);
  for (const int64_t micro_batch : {1, 4}) {
    Objective split(model, tiny_loss(GetParam()), batch.images, batch.labels, micro_batch);
    const ExampleSums found = PerExampleGradients(split).sums(true);
    EXPECT_LT(relative(found.squared_norms, expected.squared_norms), 1e-13) << micro_batch;
    EXPECT_LT(relative(found.mean, expected.mean), 1e-13) << micro_batch;
    EXPECT_LT(relative(found.mean_square, expected.mean_square), 1e-13) << micro_batch;
  }
}

TEST_P(PerExampleGradientsTest, OfFloat32AreNear) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 9);
  const auto wide = tiny_model(GetParam()), narrow = tiny_model(GetParam(), {}, 1, at::kFloat);
  Objective exact(wide, tiny_loss(GetParam()), batch.images, batch.labels, 9);
  Objective single(narrow, tiny_loss(GetParam()),
                   batch.images.is_floating_point() ? batch.images.to(at::kFloat) : batch.images,
                   batch.labels, 4);
  const ExampleSums expected = PerExampleGradients(exact).sums(true);
  const ExampleSums found = PerExampleGradients(single).sums(true);
  EXPECT_EQ(found.squared_norms.scalar_type(), at::kDouble);
  // Some ten layers of float32 roundings of 6e-8, squared.
  EXPECT_LT(relative(found.squared_norms, expected.squared_norms), 1e-5);
  EXPECT_LT(relative(found.mean, expected.mean), 1e-5);
  EXPECT_LT(relative(found.mean_square, expected.mean_square), 1e-5);
}

TEST(PerExampleGradients, OfAScriptAreItsTwins) {
  const testing::TemporaryFolder folder;
  testing::write_small_cnn_script(folder / "net.pt");
  const auto script = testing::script_model(folder / "net.pt"), own = tiny_model("small_cnn", {"norm=batch"});
  leave_the_start(*own);
  testing::copy_tensors(*own, *script);
  const auto batch = tiny_batch(tiny_image_shape(), 7);
  Objective of_script(script, LossKind::cross_entropy, batch.images, batch.labels, 3);
  Objective of_own(own, LossKind::cross_entropy, batch.images, batch.labels, 3);
  const ExampleSums found = PerExampleGradients(of_script).sums(true),
                    expected = PerExampleGradients(of_own).sums(true);
  // Modules come in another order than layers: sums over all tensors.
  EXPECT_LT(relative(found.squared_norms.sum(1), expected.squared_norms.sum(1)), kGradientRounding);
  EXPECT_LT(relative(found.mean.square().sum(), expected.mean.square().sum()), kGradientRounding);
  EXPECT_LT(relative(found.mean_square.sum(), expected.mean_square.sum()), kGradientRounding);
  script->set_norm_mode(NormMode::ghost_batch, 3);
  EXPECT_THROW(PerExampleGradients(of_script).sums(), ConfigError);
}

TEST(PerExampleGradients, OfStridesKernelsAndShortcuts) {
  const auto batch = tiny_batch(tiny_image_shape(), 5);
  const auto check = [&](const std::string& name, const std::vector<std::string>& settings) {
    const auto model = tiny_model(name, settings);
    // As data come (data/dataset.h): the second micro-batch then lies in the middle of what the first begins.
    const at::Tensor images = batch.images.contiguous(at::MemoryFormat::ChannelsLast);
    for (const int64_t micro_batch : {5, 2}) {
      Objective objective(model, LossKind::cross_entropy, images, batch.labels, micro_batch);
      expect_brute_force(objective, name + " ");
    }
  };
  check("small_cnn", {"downsample=stride", "kernel=5"});
  check("small_cnn", {"downsample=stride", "kernel=1"});
  check("small_cnn", {"downsample=pool", "kernel=1"});  // images as they lie are their own patches
  check("resnet20", {"norm=group", "width=4", "groups=2", "blocks=2"});
}

// One gradient of the second convolution has 204,800 numbers and its patches 25,600: four examples fit a
// piece.
TEST(PerExampleGradients, OfAMicroBatchInPieces) {
  const auto model = tiny_model("small_cnn", {"widths=[64, 128]", "kernel=5"});
  const auto batch = tiny_batch(tiny_image_shape(), 7);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 7);
  expect_brute_force(objective, "");
}

TEST(PerExampleGradients, OfLeastSquaresInClosedForm) {
  const int64_t n = 13;
  const at::Tensor x = testing::sine_numbers({n, 4}), labels = at::arange(n).remainder(3);
  const at::Tensor w = testing::sine_numbers({3, 4}, 50);
  Objective objective(std::make_shared<testing::LinearModel>(w.clone()), LossKind::mse, x, labels, 5);
  const ExampleSums sums = PerExampleGradients(objective).sums(true);
  const at::Tensor residual = x.matmul(w.t()) - at::one_hot(labels, 3);
  const at::Tensor g = at::einsum("ic,ij->icj", {residual, x}).flatten(1);
  EXPECT_LT(relative(sums.squared_norms.sum(1), residual.square().sum(1) * x.square().sum(1)), 1e-14);
  EXPECT_LT(relative(sums.mean, g.mean(0)), 1e-14);
  EXPECT_LT(relative(sums.mean_square, g.square().mean(0)), 1e-14);
}

TEST(PerExampleGradients, OfUnusedParametersAreZero) {
  const at::Tensor x = testing::sine_numbers({6, 4}), labels = at::arange(6).remainder(3);
  Objective objective(std::make_shared<testing::LinearModel>(testing::sine_numbers({3, 4}), true),
                      LossKind::mse, x, labels, 4);
  const ExampleSums sums = PerExampleGradients(objective).sums(true);
  EXPECT_GT(sums.squared_norms.select(1, 0).min().item<double>(), 0);
  EXPECT_EQ(sums.squared_norms.select(1, 1).abs().max().item<double>(), 0);
  EXPECT_EQ(sums.mean.narrow(0, 12, 2).abs().max().item<double>(), 0);
}

TEST(PerExampleGradients, LeaveTheModelAsItWas) {
  const auto model = tiny_model("resnet20", {"norm=batch"});
  const auto batch = tiny_batch(tiny_image_shape(), 6);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 4);
  const at::Tensor before = objective.gradient();
  PerExampleGradients(objective).sums(true);
  EXPECT_EQ(model->norm_mode(), NormMode::folded);
  EXPECT_TRUE(at::equal(objective.gradient(), before));
  for (const ParameterInfo& p : model->parameter_table()) EXPECT_FALSE(p.tensor.grad().defined()) << p.name;
}

std::string refusal_of(Objective& objective) {
  return testing::message_of([&] { PerExampleGradients(objective).sums(); });
}

/// A network with one linear layer, of which `use` makes logits.
class OneLayer final : public Model {
 public:
  using Use = std::function<at::Tensor(const Linear& layer, const at::Tensor& weight, const at::Tensor& x)>;
  explicit OneLayer(Use use) : use_(std::move(use)) {
    at::Generator init = make_generator(1);
    layer_ = std::make_unique<Linear>(Builder{*this, init}, "square", 4, 4);
    parameter_table()[0].tensor.set_data(parameter_table()[0].tensor.to(at::kDouble));
    parameter_table()[1].tensor.set_data(parameter_table()[1].tensor.to(at::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) override { return use_(*layer_, parameter_table()[0].tensor, x); }

 private:
  Use use_;
  std::unique_ptr<Linear> layer_;
};

class TwoConvolutions final : public Model {
 public:
  TwoConvolutions() {
    at::Generator init = make_generator(1);
    layer_ = std::make_unique<Conv2d>(Builder{*this, init}, "conv", Conv2d::Shape{2, 2, 3, 1, 1});
    for (const ParameterInfo& p : parameter_table()) at::Tensor(p.tensor).set_data(p.tensor.to(at::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) override {
    return global_average_pool((*layer_)((*layer_)(x).tanh()));
  }

 private:
  std::unique_ptr<Conv2d> layer_;
};

Objective objective_of(OneLayer::Use use) {
  const at::Tensor x = testing::sine_numbers({6, 4}), labels = at::arange(6).remainder(4);
  return {std::make_shared<OneLayer>(std::move(use)), LossKind::mse, x, labels, 4};
}

std::string refusal_of(OneLayer::Use use) {
  Objective objective = objective_of(std::move(use));
  return refusal_of(objective);
}

using ::testing::HasSubstr;

TEST(PerExampleGradients, OfAParameterThatLayersShare) {
  Objective twice = objective_of(
      [](const Linear& layer, const at::Tensor&, const at::Tensor& x) { return layer(layer(x).tanh()); });
  expect_brute_force(twice, "two calls of one layer");
  // The output of the second call has no part in the loss.
  Objective unused = objective_of([](const Linear& layer, const at::Tensor&, const at::Tensor& x) {
    layer(x.square());
    return layer(x);
  });
  expect_brute_force(unused, "one call that counts");
}

TEST(PerExampleGradients, OfASharedConvolution) {
  Objective objective(std::make_shared<TwoConvolutions>(), LossKind::mse, testing::sine_numbers({5, 2, 4, 4}),
                      at::arange(5).remainder(2), 3);
  expect_brute_force(objective, "one kernel, twice");
}

TEST(PerExampleGradientsRefuse, AParameterThatIsUsedOutsideToo) {
  EXPECT_THAT(refusal_of([](const Linear& layer, const at::Tensor& weight, const at::Tensor& x) {
                return layer(x) + weight.square().sum();
              }),
              HasSubstr("square.weight of layer square enters the loss outside of"));
}

TEST(PerExampleGradientsRefuse, AParameterOutsideOfKnownLayers) {
  EXPECT_THAT(refusal_of([](const Linear&, const at::Tensor& weight, const at::Tensor& x) {
                return x.matmul(weight).tanh();
              }),
              HasSubstr("square.weight of layer square enters the loss outside of"));
}

TEST(PerExampleGradientsRefuse, ALinearLayerOverMoreThanSequences) {
  EXPECT_THAT(refusal_of([](const Linear& layer, const at::Tensor&, const at::Tensor& x) {
                return layer(x.unsqueeze(1).unsqueeze(1)).flatten(1);
              }),
              HasSubstr("layer square is linear over inputs of 4 dimensions"));
}

TEST(PerExampleGradientsRefuse, StatisticsOfTheBatchAndTrainingMode) {
  const auto model = tiny_model("resnet20", {"norm=batch"});
  const auto batch = tiny_batch(tiny_image_shape(), 6);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 4);
  model->set_norm_mode(NormMode::ghost_batch, 2);
  EXPECT_THAT(refusal_of(objective), HasSubstr("layer norm1 normalises by statistics of the batch"));
  model->set_norm_mode(NormMode::folded);
  EXPECT_EQ(refusal_of(objective), "no error");
  model->train();
  EXPECT_THAT(refusal_of(objective), HasSubstr("training mode"));
}

}  // namespace
}  // namespace basin
