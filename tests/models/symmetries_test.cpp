// Other weights, the same function: on every model that has hidden units which may change places.
#include <gtest/gtest.h>

#include "core/seed.h"
#include "models/layers.h"
#include "models/registry.h"
#include "models/symmetries.h"
#include "models/twin.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::tiny_batch;
using testing::tiny_image_shape;
using testing::tiny_input_shape;
using testing::variants_of;
using Settings = std::vector<std::string>;

/// A model in one of its variants.
struct Network {
  std::string model;
  Settings settings;
};

/// Every model in every variant for which `has` holds.
std::vector<Network> networks_where(bool (*has)(const Model&)) {
  std::vector<Network> found;
  for (const std::string& name : testing::own_models()) {
    for (const Settings& settings : variants_of(name))
      if (has(*testing::tiny_model(name, settings))) found.push_back({name, settings});
  }
  return found;
}

bool has_groups(const Model& model) { return !model.unit_groups().empty(); }

/// The last tensor is the weight or the bias of the last layer, which a linear one indexes by class.
bool ends_by_class(const Model& model) {
  return model.parameter_table().back().tensor.size(0) == tiny_image_shape().classes;
}

/// In the letters that a test's name may have: "mlp_norm_none_groups_1".
std::string name_of(const Network& network) {
  std::string name = network.model;
  for (const std::string& setting : network.settings) name += "_" + setting;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::ostream& operator<<(std::ostream& out, const Network& network) { return out << name_of(network); }

/// With ReLUs, at a random point (weights of norms aren't 1, none is 0), in eval mode with statistics of the batch.
std::shared_ptr<Model> network_of(const Network& network, const at::Tensor& images) {
  Settings settings = network.settings;
  const Settings relu = testing::rectified(network.model);
  settings.insert(settings.end(), relu.begin(), relu.end());
  const auto model = testing::tiny_model(network.model, settings);
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
  at::Tensor images = tiny_batch(tiny_input_shape(GetParam().model), 16).images;
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

/// The batch norms among what makes the units: whether there are any, and whether each has a learned scale.
struct NormsOf {
  explicit NormsOf(const UnitGroup& group) {
    std::set<std::string> names;
    for (const UnitAxis& axis : group.outputs) names.insert(axis.tensor);
    const std::string end = ".running_mean";
    for (const std::string& name : names) {
      if (!name.ends_with(end)) continue;
      any = true;
      scaled = scaled && names.contains(name.substr(0, name.size() - end.size()) + ".weight");
    }
  }
  bool any = false, scaled = true;
};

// Some ten layers of float64 sums of up to some hundred products, and factors up to 10 and back.
constexpr double kSymmetryRounding = 1e-12;

at::Tensor random_factors(int64_t units) {
  at::Generator generator = make_generator(8);
  return at::empty({units}, at::kDouble).uniform_(-1, 1, generator).mul_(std::log(10)).exp_();
}

TEST_P(Symmetries, EachUnitByAFactorOfItsOwn) {
  for (const UnitGroup& group : groups) {
    if (group.rescalable) {
      EXPECT_LT(moved_by(relu_rescale(*model, group, random_factors(group.units))), kSymmetryRounding)
          << group.name;
    } else {
      EXPECT_TRUE(!NormsOf(group).scaled || testing::rectified(GetParam().model).empty()) << group.name;
    }
  }
}

TEST_P(Symmetries, WeightsBeforeABatchNormByAFactor) {
  for (const UnitGroup& group : groups) {
    EXPECT_EQ(group.normalised, NormsOf(group).any) << group.name;
    for (const double c : {10.0, 0.1}) {
      if (!group.normalised) continue;
      EXPECT_LT(moved_by(norm_scale(*model, group, c)), kSymmetryRounding) << group.name;
    }
  }
}

TEST_P(Symmetries, UnitsInAnotherOrder) {
  for (const UnitGroup& group : groups) {
    const at::Tensor backwards = at::arange(group.units - 1, -1, -1, at::kLong);
    EXPECT_LT(moved_by(unit_permutation(group, backwards)), kSymmetryRounding) << group.name;
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
  EXPECT_LT(moved_by(joined(all)), kSymmetryRounding);
}

// The twin is the same function, and the same one for all networks that differ by a factor for each group.
TEST_P(Symmetries, TheTwinOfEqualNormIsTheSameFunctionAndForgetsFactors) {
  const at::NoGradGuard no_grad;
  const NamedTensors tensors = named_tensors(*model), twin = equal_norm_twin(*model, tensors);
  const at::Tensor before = model->forward(images);
  std::vector<Symmetry> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    const at::Tensor factor = at::full({groups[i].units}, i % 2 == 0 ? 5.0 : 0.3, at::kDouble);
    if (groups[i].rescalable) all.push_back(relu_rescale(*model, groups[i], factor));
    if (groups[i].normalised) all.push_back(norm_scale(*model, groups[i], 3));
  }
  apply_symmetry(joined(all), tensors);
  const NamedTensors other = equal_norm_twin(*model, tensors);
  for (size_t i = 0; i < twin.size(); ++i) {
    const double size = twin[i].second.abs().max().item<double>();
    // Coupled groups close on it geometrically: DavidNet without norms is 1e-6 away after all sweeps, the others 1e-9.
    EXPECT_LE((other[i].second - twin[i].second).abs().max().item<double>(), 1e-5 * size) << twin[i].first;
  }
  become_equal_norm_twin(*model);
  const at::Tensor after = model->forward(images);
  EXPECT_LT(((after - before).abs().max() / before.abs().max()).item<double>(), kSymmetryRounding);
}

TEST_P(Symmetries, WeightsBeforeABatchNormHaveTheLengthThatTheTwinSays) {
  const NamedTensors twin = equal_norm_twin(*model, named_tensors(*model));
  for (const UnitGroup& group : groups) {
    if (!group.normalised) continue;
    double square = 0, weights = 0;
    for (const UnitAxis& output : group.outputs)
      for (const ParameterInfo& parameter : model->parameter_table()) {
        if (parameter.name != output.tensor || parameter.kind != ParameterKind::weight) continue;
        weights += 1;
        for (const auto& [name, tensor] : twin)
          if (name == parameter.name) square += tensor.square().sum().item<double>();
      }
    EXPECT_NEAR(square, weights * static_cast<double>(group.units), 1e-9 * square) << group.name;
  }
}

using LogitScale = Symmetries;
TEST_P(LogitScale, LeavesTheDecisions) {
  const at::NoGradGuard no_grad;
  const Symmetry twice = logit_scale(*model, tiny_image_shape().classes, 2);
  ASSERT_FALSE(twice.changes.empty());
  const at::Tensor before = model->forward(images);
  apply_symmetry(twice, named_tensors(*model));
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

std::string test_name(const ::testing::TestParamInfo<Network>& info) { return name_of(info.param); }
INSTANTIATE_TEST_SUITE_P(Registry, Symmetries, ::testing::ValuesIn(networks_where(has_groups)), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, LogitScale, ::testing::ValuesIn(networks_where(ends_by_class)), test_name);

TEST(LogitScaleOf, AnyOtherEndChangesNothing) {
  for (const Network& network : networks_where([](const Model& model) { return !ends_by_class(model); })) {
    const auto model = network_of(network, tiny_batch(tiny_input_shape(network.model), 16).images);
    EXPECT_TRUE(logit_scale(*model, tiny_image_shape().classes, 2).changes.empty()) << network;
  }
}

/// "conv1:3 conv2:4 ".
std::string groups_of(const Model& model) {
  std::string text;
  for (const UnitGroup& group : model.unit_groups()) text += fmt::format("{}:{} ", group.name, group.units);
  return text;
}

/// Norms that take their statistics from an example and not from the batch: they tie neighbours together.
bool normalises_examples(const Model& model) {
  const auto& table = model.parameter_table();
  return !model.has_batch_statistics() && std::any_of(table.begin(), table.end(), [](const ParameterInfo& p) {
    return p.kind == ParameterKind::norm_weight || p.kind == ParameterKind::norm_bias;
  });
}

TEST(UnitGroups, AreTheSameInEveryVariantWithoutNormsOfExamples) {
  for (const std::string& name : testing::own_models()) {
    std::set<std::string> found;
    for (const Settings& settings : variants_of(name)) {
      const auto model = testing::tiny_model(name, settings);
      if (!normalises_examples(*model)) found.insert(groups_of(*model));
    }
    EXPECT_LE(found.size(), 1U) << name << ": " << fmt::format("{}", found);
  }
}

TEST(UnitGroups, AreNoneWhereNormsOfExamplesTieNeighboursTogether) {
  for (const std::string& name : testing::own_models()) {
    for (const Settings& settings : variants_of(name)) {
      const auto model = testing::tiny_model(name, settings);
      if (!normalises_examples(*model)) continue;
      std::set<std::string> of_norms;
      for (const ParameterInfo& p : model->parameter_table())
        if (p.kind == ParameterKind::norm_weight || p.kind == ParameterKind::norm_bias)
          of_norms.insert(p.name);
      for (const UnitGroup& group : model->unit_groups())
        for (const UnitAxis& axis : group.outputs)
          EXPECT_FALSE(of_norms.contains(axis.tensor)) << axis.tensor;
    }
  }
}

TEST(UnitGroups, ArentRescalableBehindAnActivationThatBends) {
  for (const std::string& name : testing::own_models()) {
    if (testing::rectified(name).empty()) continue;  // its smooth version may be linear
    for (const UnitGroup& group : testing::tiny_model(name)->unit_groups())
      EXPECT_FALSE(group.rescalable) << name;
  }
}

// Golden values of our networks, by hand: every layer with hidden units is in a group, but for residual streams; a batch norm
// follows each but the whitening; behind a group norm there are none.
TEST(UnitGroups, AreWhatTheNetworksHave) {
  const auto names_in = [](const std::string& name) { return groups_of(*testing::tiny_model(name)); };
  const auto made_with = [](const std::string& name, const std::string& norm) {
    return testing::tiny_model(name, norm_settings(norm));
  };
  for (const std::string name : {"mlp", "small_cnn", "keskar_c1", "resnet20", "davidnet", "airbench"}) {
    EXPECT_EQ(groups_of(*made_with(name, "group")), name == "airbench" ? "whiten:16 " : "") << name;
    for (const std::string norm : {"none", "batch"}) {
      for (const UnitGroup& group : made_with(name, norm)->unit_groups())
        EXPECT_EQ(group.normalised, norm == "batch" && group.name != "whiten") << name << ' ' << group.name;
    }
  }
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
