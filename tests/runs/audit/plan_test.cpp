#include "runs/audit/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::make_test_model;

std::vector<std::string> names(const std::vector<AuditTrial>& trials) {
  std::vector<std::string> all;
  for (const AuditTrial& trial : trials) all.push_back(trial.transformation);
  return all;
}

std::vector<AuditTrial> trials_of(const std::string& model, const std::vector<std::string>& settings) {
  return audit_trials(*make_test_model(model, settings, testing::tiny_image_shape()),
                      testing::tiny_image_shape().classes, 1);
}

TEST(AuditPlan, TriesWhatTheNetworkAllows) {
  using ::testing::ElementsAre;
  const std::vector<std::string> rescalings = {"relu_rescale", "relu_rescale", "relu_rescale_all",
                                               "relu_rescale_units"};
  std::vector<std::string> all = rescalings;
  all.insert(all.end(), {"norm_scale", "unit_permutation", "logit_scale"});
  EXPECT_EQ(names(trials_of("small_cnn", {"norm=batch"})), all);
  EXPECT_THAT(names(trials_of("small_cnn", {"activation=tanh"})),
              ElementsAre("unit_permutation", "logit_scale"));
  EXPECT_THAT(names(trials_of("small_cnn", {"norm=group", "groups=1"})), ElementsAre("logit_scale"));
  EXPECT_THAT(names(trials_of("noisy_quadratic", {})), ElementsAre());
}

TEST(AuditPlan, ARunInOtherCoordinatesKeepsOtherMoments) {
  const auto model = make_test_model("mlp", {"hidden=[3]"}, testing::tiny_shape());
  Checkpoint checkpoint;
  for (const ParameterInfo& parameter : model->parameter_table()) {
    checkpoint.parameters.push_back(parameter);
    const at::Tensor ones = at::ones_like(parameter.tensor.detach(), at::kFloat);
    checkpoint.optimizer.emplace_back("first_moment/" + parameter.name, ones);
    checkpoint.optimizer.emplace_back("second_moment/" + parameter.name, ones.clone());
    checkpoint.optimizer.emplace_back("fast_weights/" + parameter.name, ones.clone());
  }
  checkpoint.progress["learning_rate"] = 0.5;
  checkpoint.optimizer.emplace_back("updates", at::scalar_tensor(7, at::kLong));
  const UnitGroup group = model->unit_groups().at(0);
  const at::Tensor before = model->parameter_table()[0].tensor.detach().clone();
  const Symmetry symmetry = relu_rescale(*model, group, at::full({3}, 4.0, at::kDouble));
  const OptimizerTraits traits{.squares_in = {"second_moment"}, .weights_in = {"fast_weights"}};
  const Checkpoint other = transformed(checkpoint, symmetry, traits);

  const auto value = [&](const std::string& name) {
    for (const auto& [known, tensor] : other.optimizer)
      if (known == name) return tensor.flatten()[0].to(at::kDouble).item<double>();
    throw std::out_of_range(name);
  };
  EXPECT_EQ(value("first_moment/fc1.weight"), 0.25);
  EXPECT_EQ(value("first_moment/fc1.bias"), 0.25);
  EXPECT_EQ(value("first_moment/fc2.weight"), 4);
  EXPECT_EQ(value("first_moment/fc2.bias"), 1);
  EXPECT_EQ(value("second_moment/fc1.weight"), 0.0625);
  EXPECT_EQ(value("second_moment/fc2.weight"), 16);
  EXPECT_EQ(value("fast_weights/fc1.weight"), 4);
  EXPECT_EQ(value("fast_weights/fc2.weight"), 0.25);
  EXPECT_EQ(value("updates"), 7);
  EXPECT_EQ(std::get<double>(other.progress.at("learning_rate")), 0.5);
  // A state that isn't of single weights can't follow them.
  const Checkpoint unknown = transformed(checkpoint, symmetry, {.state_by_weight = false});
  EXPECT_TRUE(std::isnan(std::get<double>(unknown.progress.at("learning_rate"))));
  EXPECT_TRUE(at::equal(other.parameters[0].tensor, 4 * before));
  // The one handed in, which others look at too, stays as it was.
  EXPECT_TRUE(at::equal(checkpoint.parameters[0].tensor, before));
  EXPECT_EQ(checkpoint.optimizer[0].second.flatten()[0].item<double>(), 1);
}

TEST(AuditPlan, SettingsOfTheCommandLineComeOnTop) {
  const auto variants = audit_variants({"sharpness_sam"}, {"sharpness_sam.rhos=[0.25]", "pac_bayes.draws=3"});
  ASSERT_EQ(variants.size(), 4u);
  std::vector<std::string> settings;
  for (const AuditVariant& variant : variants) {
    OptionTable table;
    variant.options->bind(table);
    EXPECT_EQ(table.at("rhos").get(), OptionValue(std::vector<double>{0.25}));
    settings.push_back(variant.settings);
  }
  EXPECT_THAT(settings, ::testing::ElementsAre("", "eta=0", "", "eta=0, scaled=all"));
  EXPECT_THROW(audit_variants({"sharpness_sam"}, {"sharpness_sam.none=1"}), ConfigError);
}

}  // namespace
}  // namespace basin
