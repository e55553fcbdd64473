#include "probes/weight_norms.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "probes/estimators/layer_norms.h"
#include "tests/probes/probe_fixture.h"
#include "tests/probes/relu_networks.h"
#include "tests/probes/sharpness_models.h"

namespace basin {
namespace {

using testing::attribute;
using testing::quantity;
using testing::run_probe;
using testing::value_of;

const std::vector<std::string> kByLayer{"by_layer=true"};
constexpr double kRounding = 1e-12;  // float64 sums of some thousand terms

void expect_relative(double value, double exact) { EXPECT_NEAR(value, exact, kRounding * std::abs(exact)); }

Objective on_images(const std::shared_ptr<Model>& model, const InputShape& shape) {
  const testing::TinyBatch batch = testing::tiny_batch(shape, 10);
  return Objective(model, LossKind::cross_entropy, batch.images, batch.labels, 4);
}

at::Tensor tensor_of(const Model& model, const std::string& name) {
  for (const ParameterInfo& p : model.parameter_table()) {
    if (p.name == name) return p.tensor.detach();
  }
  for (const auto& [buffer, tensor] : model.buffer_table()) {
    if (buffer == name) return tensor;
  }
  throw std::out_of_range(name);
}

at::Tensor singular_values(const at::Tensor& w) { return std::get<1>(at::linalg_svd(w.flatten(1))); }

/// Numbers of no structure in every parameter and statistic, variances positive.
void fill(Model& model) {
  const at::NoGradGuard no_grad;
  double first = 3;
  const auto fill_one = [&](const std::string& name, at::Tensor tensor) {
    at::Tensor numbers = testing::sine_numbers(tensor.sizes(), first += 100);
    if (name.find("running_var") != std::string::npos || name.find("norm1.weight") != std::string::npos)
      numbers = numbers.abs() + 0.2;
    tensor.copy_(numbers);
  };
  for (const ParameterInfo& p : model.parameter_table()) fill_one(p.name, p.tensor);
  for (const auto& [name, tensor] : model.buffer_table()) fill_one(name, tensor);
}

/// Sum over all paths of the product of squared weights along it, one by one, of 9 -> 4 -> 3 with biases.
double sum_over_paths(const Model& model) {
  const at::Tensor w1 = tensor_of(model, "fc1.weight"), b1 = tensor_of(model, "fc1.bias"),
                   w2 = tensor_of(model, "fc2.weight"), b2 = tensor_of(model, "fc2.bias");
  const auto at = [](const at::Tensor& t, int64_t i) { return t.flatten()[i].item<double>(); };
  double sum = 0;
  for (int64_t c = 0; c < 3; ++c) {
    sum += std::pow(at(b2, c), 2);
    for (int64_t h = 0; h < 4; ++h) {
      const double out = at(w2, 4 * c + h);
      sum += std::pow(at(b1, h) * out, 2);
      for (int64_t i = 0; i < 9; ++i) sum += std::pow(at(w1, 9 * h + i) * out, 2);
    }
  }
  return sum;
}

TEST(WeightNorms, ALayerOfZerosHasNoRatioOfNorms) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  at::Tensor(objective.parameters().parameters()[2].tensor).detach().zero_();  // fc2.weight
  const ProbeResult result = run_probe("weight_norms", objective);
  EXPECT_EQ(quantity(result, "frobenius_over_spectral").status, ProbeStatus::not_resolved);
  EXPECT_NE(result.message.find("frobenius_over_spectral: a layer's weights are all 0"), std::string::npos)
      << result.message;
  EXPECT_EQ(result.message.find("distance_from_start: "), 0u) << result.message;  // no reason is lost
  EXPECT_EQ(value_of(result, "spectral_product"), 0);
}

TEST(WeightNorms, AreThoseOfSingularValuesAndPaths) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const at::Tensor start = at::cos(at::arange(55, at::kDouble));
  const ProbeResult result = run_probe("weight_norms", objective, kByLayer, 11, 0, nullptr, start);
  ASSERT_EQ(result.status, ProbeStatus::ok) << result.message;
  const at::Tensor w = objective.parameters().gather();
  expect_relative(value_of(result, "weight_norm"), w.norm().item<double>());
  expect_relative(value_of(result, "squared_weight_norm"), w.dot(w).item<double>());
  expect_relative(value_of(result, "distance_from_start"), (w - start).norm().item<double>());
  EXPECT_EQ(attribute<std::vector<std::string>>(result, "layers"), (std::vector<std::string>{"fc1", "fc2"}));
  double frobenius = 1, spectral = 1, ratios = 0, apart = 0;
  const std::vector<at::Tensor> now = objective.parameters().unflatten(w),
                                before = objective.parameters().unflatten(start);
  for (const size_t layer : {0, 1}) {
    const at::Tensor s = singular_values(now[2 * layer]);  // weight, bias, weight, bias
    const double largest = s.max().item<double>(), squares = s.square().sum().item<double>();
    expect_relative(quantity(result, "layer_frobenius").value[layer], std::sqrt(squares));
    expect_relative(quantity(result, "layer_spectral").value[layer], largest);
    EXPECT_LT(quantity(result, "layer_spectral").uncertainty[layer], 1e-13);
    EXPECT_GT(quantity(result, "layer_spectral").uncertainty[layer], 0);
    frobenius *= squares;
    spectral *= largest * largest;
    ratios += squares / (largest * largest);
    apart += singular_values(now[2 * layer] - before[2 * layer]).max().square().item<double>();
  }
  expect_relative(value_of(result, "frobenius_product"), frobenius);
  expect_relative(value_of(result, "spectral_product"), spectral);
  expect_relative(value_of(result, "frobenius_sum"), 2 * std::sqrt(frobenius));
  expect_relative(value_of(result, "spectral_sum"), 2 * std::sqrt(spectral));
  expect_relative(value_of(result, "frobenius_over_spectral"), ratios);
  expect_relative(value_of(result, "distance_spectral"), apart);
  expect_relative(value_of(result, "path_norm"), std::sqrt(sum_over_paths(*network.model)));
  EXPECT_EQ(quantity(result, "spectral_product").uncertainty_kind, UncertaintyKind::residual);
}

TEST(WeightNorms, UnderRescalingThePathNormStaysAndFrobeniusMoves) {
  testing::ReluNetwork network;
  Objective objective = network.objective();
  const ProbeResult before = run_probe("weight_norms", objective, kByLayer);
  network.rescale(7);
  const ProbeResult layers = run_probe("weight_norms", objective, kByLayer);
  testing::rescale_units(*network.model, "fc1", "fc2", {5, 1, 0.2, 3});
  const ProbeResult units = run_probe("weight_norms", objective, kByLayer);
  for (const ProbeResult* after : {&layers, &units})
    expect_relative(value_of(*after, "path_norm"), value_of(before, "path_norm"));
  // Products of norms stay when whole layers are scaled against each other, not unit by unit.
  for (const char* name : {"frobenius_product", "spectral_product"}) {
    expect_relative(value_of(layers, name), value_of(before, name));
    EXPECT_GT(std::abs(value_of(units, name) / value_of(before, name) - 1), 0.1) << name;
  }
  expect_relative(value_of(layers, "layer_frobenius"), 7 * value_of(before, "layer_frobenius"));
  EXPECT_GT(value_of(layers, "weight_norm"), 2 * value_of(before, "weight_norm"));
}

TEST(WeightNorms, AFrozenBatchNormIsFoldedIntoTheLayerBefore) {
  const auto model = testing::make_test_model("mlp", {"hidden=[4]", "norm=batch"}, testing::tiny_shape());
  fill(*model);
  const auto of = [&](const std::string& name) { return tensor_of(*model, name); };
  const at::Tensor scale = of("norm1.weight") / (of("norm1.running_var") + 1e-5).sqrt();
  const at::Tensor w = of("fc1.weight") * scale.unsqueeze(1);
  const at::Tensor b = (of("fc1.bias") - of("norm1.running_mean")) * scale + of("norm1.bias");
  const at::Tensor hidden = w.square().sum(1) + b.square();
  const at::Tensor logits = of("fc2.weight").square().mv(hidden) + of("fc2.bias").square();
  for (const bool fold : {true, false}) {  // how the objective computes doesn't matter
    const testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 10);
    Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 4, 0, fold);
    const ProbeResult result = run_probe("weight_norms", objective, kByLayer);
    expect_relative(value_of(result, "path_norm"), std::sqrt(logits.sum().item<double>()));
    expect_relative(value_of(result, "layer_frobenius"), w.norm().item<double>());
    expect_relative(value_of(result, "layer_spectral"), singular_values(w).max().item<double>());
    EXPECT_EQ(quantity(result, "distance_spectral").status, ProbeStatus::not_resolved);
  }
}

// The squared network is one of the same kind without norms, whose forward pass is that of the model itself.
TEST(WeightNorms, PathNormOfAResidualNetworkWithNorms) {
  const auto model = testing::tiny_model("resnet20", {"activation=relu"}),
             squared = testing::tiny_model("resnet20", {"activation=relu", "norm=none"});
  fill(*model);
  at::NoGradGuard no_grad;
  for (const ParameterInfo& p : squared->parameter_table()) {
    at::Tensor value;
    const std::string norm = [&] {
      std::string name = p.layer;
      return name.replace(name.rfind("conv") == std::string::npos ? 0 : name.rfind("conv"), 4, "norm");
    }();
    if (p.layer == "fc") {
      value = tensor_of(*model, p.name);
    } else {
      const at::Tensor scale =
          tensor_of(*model, norm + ".weight") / (tensor_of(*model, norm + ".running_var") + 1e-5).sqrt();
      value = p.kind == ParameterKind::weight
                  ? tensor_of(*model, p.name) * scale.view({-1, 1, 1, 1})
                  : tensor_of(*model, norm + ".bias") - tensor_of(*model, norm + ".running_mean") * scale;
    }
    at::Tensor(p.tensor).copy_(value.square());
  }
  const double sum = squared->forward(at::ones({1, 2, 8, 8}, at::kDouble)).sum().item<double>();
  Objective objective = on_images(model, testing::tiny_image_shape());
  expect_relative(value_of(run_probe("weight_norms", objective, kByLayer), "path_norm"), std::sqrt(sum));
}

TEST(WeightNorms, AFactorOnTheLogitsIsAWeightOfEveryPath) {
  const auto path = [](const std::string& scale) {
    Objective objective = on_images(testing::tiny_model("davidnet", {"activation=relu", "norm=none", scale}),
                                    testing::tiny_image_shape());
    return value_of(run_probe("weight_norms", objective, kByLayer), "path_norm");
  };
  expect_relative(path("logit_scale=0.25"), 0.25 * path("logit_scale=1"));
}

TEST(WeightNorms, WithoutReluOrWithGroupNormThereIsNoPathNorm) {
  for (const auto& settings :
       std::vector<std::vector<std::string>>{{"norm=none", "activation=softplus"},
                                             {"norm=none", "activation=tanh"},
                                             {"norm=none", "activation=gelu"},
                                             {"norm=group", "groups=1", "activation=relu"}}) {
    Objective objective = on_images(testing::tiny_model("small_cnn", settings), testing::tiny_image_shape());
    const ProbeResult result = run_probe("weight_norms", objective, kByLayer);
    EXPECT_EQ(quantity(result, "path_norm").status, ProbeStatus::not_resolved) << settings[1];
    EXPECT_EQ(quantity(result, "spectral_product").status, ProbeStatus::ok) << settings[1];
    EXPECT_NE(result.message.find("path_norm: an activation other than ReLU"), std::string::npos)
        << result.message;
  }
  const at::Tensor x = testing::sine_numbers({6, 4});
  Objective unknown(
      std::make_shared<testing::AffineModel>(testing::sine_numbers({2, 4}), at::zeros({2}, at::kDouble)),
      LossKind::cross_entropy, x, at::zeros({6}, at::kLong), 6);
  const ProbeResult result = run_probe("weight_norms", unknown);
  EXPECT_EQ(quantity(result, "frobenius_product").status, ProbeStatus::not_resolved);
  EXPECT_EQ(quantity(result, "weight_norm").status, ProbeStatus::ok);
  EXPECT_NE(result.message.find("fc.weight enters the network outside"), std::string::npos) << result.message;
}

// Dense, from images of one pixel each; stride 2 leaves the last row and column out in part.
TEST(WeightNorms, OperatorNormIsThatOfTheDenseConvolution) {
  for (const auto& [stride, padding] : {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {2, 0}}) {
    const NetworkLayer layer{"conv", 0, testing::sine_numbers({4, 2, 3, 3}), {2, 6, 6}, stride, padding};
    const at::Tensor pixels = at::eye(72, at::kDouble).view({72, 2, 6, 6});
    const at::Tensor dense = at::conv2d(pixels, layer.weight, {}, stride, padding).flatten(1);
    const SpectralNorm norm = operator_norm(layer, 5);
    const double exact = singular_values(dense).max().item<double>();
    EXPECT_NEAR(norm.value, exact, norm.residual + 1e-13);
    EXPECT_LT(norm.residual, 1e-7 * exact);
    EXPECT_NE(spectral_norm(layer.weight).value, norm.value);  // another matrix
  }
}

TEST(WeightNorms, OperatorNormsOnRequest) {
  Objective objective =
      on_images(testing::tiny_model("small_cnn", {"activation=relu"}), testing::tiny_image_shape());
  const ProbeResult result = run_probe("weight_norms", objective, {"by_layer=true", "operator_norms=true"});
  const Quantity& layers = quantity(result, "layer_operator");
  ASSERT_EQ(layers.value.size(), 3u);
  const double product = layers.value[0] * layers.value[1] * layers.value[2];
  expect_relative(value_of(result, "operator_product"), product * product);
  expect_relative(layers.value[2], quantity(result, "layer_spectral").value[2]);  // a linear layer
}

}  // namespace
}  // namespace basin
