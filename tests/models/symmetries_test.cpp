// Other weights, the same function: on every model that has hidden units which may change places.
#include <gtest/gtest.h>

#include "core/seed.h"
#include "models/registry.h"
#include "models/symmetries.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::has_option;
using testing::tiny_batch;
using testing::tiny_image_shape;

/// Models and norms with groups: the pairs that are tested.
struct Network {
  std::string model, norm;
};

std::vector<Network> networks() {
  std::vector<Network> all;
  for (const std::string& name : names_of(model_registry())) {
    if (!has_option(name, "norm")) continue;
    for (const char* norm : {"none", "batch"}) all.push_back({name, norm});
  }
  return all;
}

/// At a random point (weights of norms aren't 1, none is 0), in eval mode with statistics of the batch.
std::shared_ptr<Model> network_of(const Network& network, const at::Tensor& images,
                                  const std::string& activation = "relu") {
  const auto model = testing::tiny_model(network.model, {"norm=" + network.norm, "activation=" + activation});
  const at::NoGradGuard no_grad;
  at::Generator generator = make_generator(5);
  for (const auto& [name, tensor] : named_tensors(*model)) {
    if (name.find("running_") != std::string::npos) continue;
    tensor.add_(at::empty_like(tensor).normal_(0, 0.2, generator));
  }
  model->eval();
  model->set_norm_mode(NormMode::accumulate);
  model->forward(images);
  model->set_norm_mode(NormMode::running);
  return model;
}

class Symmetries : public ::testing::TestWithParam<Network> {
 protected:
  at::Tensor images = tiny_batch(tiny_image_shape(), 16).images;
  std::shared_ptr<Model> model = network_of(GetParam(), images);
  std::vector<UnitGroup> groups = model->unit_groups();

  /// How far the logits move, as a share of the largest; the weights must have moved as well.
  double moved_by(const Symmetry& symmetry) {
    const at::NoGradGuard no_grad;
    const at::Tensor before = model->forward(images);
    std::vector<at::Tensor> weights;
    for (const auto& [name, tensor] : named_tensors(*model)) weights.push_back(tensor.flatten().clone());
    apply_symmetry(symmetry, named_tensors(*model));
    std::vector<at::Tensor> changed;
    for (const auto& [name, tensor] : named_tensors(*model)) changed.push_back(tensor.flatten());
    EXPECT_GT((at::cat(changed) - at::cat(weights)).norm().item<double>(), 0.1);
    return ((model->forward(images) - before).abs().max() / before.abs().max()).item<double>();
  }
};

// Some ten layers of float64 sums of up to some hundred products, and factors up to 10 and back.
constexpr double kRounding = 1e-12;

at::Tensor random_factors(int64_t units) {
  at::Generator generator = make_generator(8);
  return at::empty({units}, at::kDouble).uniform_(-1, 1, generator).mul_(std::log(10)).exp_();
}

TEST_P(Symmetries, EachUnitByAFactorOfItsOwn) {
  for (const UnitGroup& group : groups) {
    if (group.rescalable) {
      EXPECT_LT(moved_by(relu_rescale(*model, group, random_factors(group.units))), kRounding) << group.name;
    } else {
      EXPECT_EQ(GetParam().model + GetParam().norm, "airbenchbatch") << "its norms have no weights";
    }
  }
}

TEST_P(Symmetries, WeightsBeforeABatchNormByAFactor) {
  for (const UnitGroup& group : groups) {
    const bool whitening = group.name == "whiten";  // no norm follows
    EXPECT_EQ(group.normalised, GetParam().norm == "batch" && !whitening) << group.name;
    for (const double c : {10.0, 0.1}) {
      if (!group.normalised) continue;
      EXPECT_LT(moved_by(norm_scale(*model, group, c)), kRounding) << group.name;
    }
  }
}

TEST_P(Symmetries, UnitsInAnotherOrder) {
  ASSERT_FALSE(groups.empty());
  for (const UnitGroup& group : groups) {
    const at::Tensor backwards = at::arange(group.units - 1, -1, -1, at::kLong);
    EXPECT_LT(moved_by(unit_permutation(group, backwards)), kRounding) << group.name;
  }
}

// A rotation isn't its own inverse: it tells order[i] from its inverse, and new from old.
TEST_P(Symmetries, ARotationAndItsInverseAreTheIdentity) {
  const UnitGroup& group = groups.front();
  const at::Tensor order = at::arange(group.units, at::kLong).roll(1);
  const NamedTensors tensors = named_tensors(*model);
  const std::string& first = group.outputs.front().tensor;
  for (const auto& [name, tensor] : tensors) {
    if (name != first) continue;
    const at::Tensor before = tensor.clone();
    apply_symmetry(unit_permutation(group, order), tensors);
    EXPECT_TRUE(at::equal(tensor.select(0, 1), before.select(0, 0)));
    apply_symmetry(unit_permutation(group, order.argsort()), tensors);
    EXPECT_TRUE(at::equal(tensor, before));
  }
}

TEST_P(Symmetries, AllOfThemOneAfterTheOther) {
  std::vector<Symmetry> all;
  for (const UnitGroup& group : groups) {
    if (group.rescalable) all.push_back(relu_rescale(*model, group, random_factors(group.units)));
    if (group.normalised) all.push_back(norm_scale(*model, group, 3));
    all.push_back(unit_permutation(group, at::arange(group.units, at::kLong).roll(1)));
  }
  EXPECT_LT(moved_by(joined(all)), kRounding);
}

TEST_P(Symmetries, LogitsByAFactorLeaveTheDecisions) {
  const at::NoGradGuard no_grad;
  const at::Tensor before = model->forward(images);
  apply_symmetry(logit_scale(*model, tiny_image_shape().classes, 2), named_tensors(*model));
  const at::Tensor after = model->forward(images);
  EXPECT_TRUE(at::allclose(after, 2 * before, 1e-12, 1e-12));
  EXPECT_TRUE(at::equal(after.argmax(1), before.argmax(1)));
}

// Gradients by the weights turn the other way, and with them what an optimiser keeps of them.
TEST_P(Symmetries, GradientsTurnTheOtherWay) {
  std::vector<Symmetry> all;
  for (const UnitGroup& group : groups) {
    if (group.rescalable) all.push_back(relu_rescale(*model, group, random_factors(group.units)));
    all.push_back(unit_permutation(group, at::arange(group.units, at::kLong).roll(1)));
  }
  const auto gradients = [&] {
    std::vector<at::Tensor> leaves;
    for (const ParameterInfo& parameter : model->parameter_table()) leaves.push_back(parameter.tensor);
    const auto found = torch::autograd::grad({model->forward(images).square().sum()}, leaves);
    NamedTensors named;
    for (size_t i = 0; i < leaves.size(); ++i)
      named.emplace_back(model->parameter_table()[i].name, found[i].clone());
    return named;
  };
  const NamedTensors before = gradients();
  apply_symmetry(joined(all), before, -1);
  apply_symmetry(joined(all), named_tensors(*model));
  const NamedTensors after = gradients();
  for (size_t i = 0; i < after.size(); ++i) {
    const double scale = after[i].second.abs().max().item<double>();
    const double difference = (after[i].second - before[i].second).abs().max().item<double>();
    // Gradients of far layers are differences of larger terms.
    EXPECT_LE(difference, 1e-9 * scale) << after[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Symmetries, ::testing::ValuesIn(networks()),
                         [](const auto& info) { return info.param.model + "_" + info.param.norm; });

TEST(UnitGroups, AreNoneWhereGroupNormTiesNeighboursTogether) {
  for (const std::string& name : names_of(model_registry())) {
    if (!has_option(name, "norm")) continue;
    const auto model = testing::tiny_model(name, {"norm=group", "groups=1"});
    for (const UnitGroup& group : model->unit_groups()) EXPECT_EQ(group.name, "whiten") << name;
  }
}

TEST(UnitGroups, ArentRescalableBehindAnActivationThatBends) {
  for (const std::string& name : names_of(model_registry())) {
    if (!has_option(name, "norm")) continue;
    for (const UnitGroup& group : testing::tiny_model(name, {"activation=tanh"})->unit_groups())
      EXPECT_FALSE(group.rescalable) << name;
  }
}

// The layers with hidden units, by hand: every one of them is in a group, but for residual streams.
TEST(UnitGroups, AreWhatTheNetworksHave) {
  const auto names_in = [](const std::string& name) {
    std::string text;
    for (const UnitGroup& group : testing::tiny_model(name)->unit_groups())
      text += fmt::format("{}:{} ", group.name, group.units);
    return text;
  };
  EXPECT_EQ(names_in("mlp"), "fc1:6 ");
  EXPECT_EQ(names_in("small_cnn"), "conv1:3 conv2:4 ");
  EXPECT_EQ(names_in("keskar_c1"), "conv1:4 conv2:4 fc1:6 fc2:4 ");
  EXPECT_EQ(names_in("resnet20"), "stage1.block1.conv1:2 stage2.block1.conv1:4 stage3.block1.conv1:8 ");
  EXPECT_EQ(names_in("davidnet"),
            "prep.conv:2 layer1.conv:4 layer1.res1.conv:4 layer2.conv:8 layer3.conv:16 layer3.res1.conv:16 ");
  EXPECT_EQ(names_in("airbench"), "whiten:16 block1.conv1:3 block1.conv2:3 block2.conv1:4 block2.conv2:4 ");
  EXPECT_EQ(names_in("noisy_quadratic"), "");
}

}  // namespace
}  // namespace basin
