// Every entry of the model registry must pass these; a new model is tested before its author writes a test.
#include <gtest/gtest.h>

#include "core/seed.h"
#include "models/layers.h"
#include "models/loss.h"
#include "models/registry.h"
#include "tests/models/dropout_at_its_place.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::tiny_batch;
using testing::tiny_input_shape;
using testing::tiny_loss;
using testing::tiny_model;
using testing::variants_of;
using Settings = std::vector<std::string>;

std::vector<at::Tensor> leaves(const Model& model) {
  std::vector<at::Tensor> tensors;
  for (const ParameterInfo& parameter : model.parameter_table()) tensors.push_back(parameter.tensor);
  return tensors;
}

at::Tensor mean_loss(Model& model, const testing::TinyBatch& batch, LossKind kind) {
  return example_losses(kind, model.forward(batch.images), batch.labels).mean();
}

// One direction in the space of all parameters, of norm 1.
std::vector<at::Tensor> random_direction(const std::vector<at::Tensor>& parameters, uint64_t seed) {
  at::Generator generator = make_generator(seed);
  std::vector<at::Tensor> direction;
  double squares = 0;
  for (const at::Tensor& p : parameters) {
    direction.push_back(at::empty(p.sizes(), p.options().requires_grad(false)).normal_(0, 1, generator));
    squares += direction.back().square().sum().item<double>();
  }
  for (at::Tensor& d : direction) d.div_(std::sqrt(squares));
  return direction;
}

void move_along(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& direction,
                double distance) {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) at::Tensor(parameters[i]).add_(direction[i], distance);
}

at::Tensor dot(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  at::Tensor sum = (a[0] * b[0]).sum();
  for (size_t i = 1; i < a.size(); ++i) sum = sum + (a[i] * b[i]).sum();
  return sum;
}

// A norm layer's start (weight 1, bias 0) is special; a random point isn't.
std::shared_ptr<Model> at_random_point(const std::string& name, const Settings& extra = {}) {
  auto model = tiny_model(name, extra);
  model->eval();
  move_along(leaves(*model), random_direction(leaves(*model), 9), 0.7);
  return model;
}

bool has_norms(const Model& model) {
  const auto& table = model.parameter_table();
  return std::any_of(table.begin(), table.end(), [](const ParameterInfo& p) {
    return p.kind == ParameterKind::norm_weight || p.kind == ParameterKind::norm_bias;
  });
}

std::vector<int64_t> outputs(int64_t n, const InputShape& shape) {
  std::vector<int64_t> sizes = shape.output();
  sizes.insert(sizes.begin(), n);
  return sizes;
}

/// Fashion-MNIST's, or that of nanoGPT's smallest setting.
InputShape full_shape(const std::string& model) {
  if (tiny_input_shape(model).tokens > 0) return {.classes = 65, .sizes = {64}, .tokens = 65, .labels = 64};
  return {.channels = 1, .height = 28, .width = 28, .classes = 10};
}

at::Tensor in_another_format(const at::Tensor& inputs) {
  return inputs.dim() == 4 ? inputs.contiguous(at::MemoryFormat::ChannelsLast) : inputs.t().contiguous().t();
}

std::vector<LossKind> losses_of(const std::string& model) {
  if (tiny_loss(model) != LossKind::cross_entropy) return {tiny_loss(model)};
  return {LossKind::cross_entropy, LossKind::mse};
}

std::string entry_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

class ModelContract : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, ModelContract, ::testing::ValuesIn(testing::own_models()), entry_name);

TEST_P(ModelContract, NamesAreUniqueAndBelongToTheirLayers) {
  const auto model = tiny_model(GetParam());
  std::set<std::string> names;
  for (const ParameterInfo& p : model->parameter_table()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(p.name.rfind(p.layer + ".", 0), 0U) << p.name;
    EXPECT_TRUE(p.tensor.is_leaf() && p.tensor.requires_grad()) << p.name;
  }
  for (const auto& [name, buffer] : model->buffer_table()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(buffer.requires_grad()) << name;
  }
  // torch sees the same tensors.
  EXPECT_EQ(model->parameters().size(), model->parameter_table().size());
  EXPECT_EQ(model->buffers().size(), model->buffer_table().size());
}

TEST_P(ModelContract, KindsFollowFromNameAndLayer) {
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    const auto model = tiny_model(GetParam(), settings);
    for (const ParameterInfo& p : model->parameter_table()) {
      const bool is_norm = p.layer.find("norm") != std::string::npos;
      const bool is_weight = p.name == p.layer + ".weight";
      const auto expected = is_norm ? (is_weight ? ParameterKind::norm_weight : ParameterKind::norm_bias)
                                    : (is_weight ? ParameterKind::weight : ParameterKind::bias);
      EXPECT_EQ(p.kind, expected) << p.name;
      EXPECT_EQ(p.tensor.dim() == 1, p.kind != ParameterKind::weight) << p.name;
    }
    EXPECT_TRUE(has_norms(*model) || !model->has_batch_statistics());
  }
}

// The networks whose entry says that norms are among their options have the one that is asked for.
TEST_P(ModelContract, NormsAreThoseOfTheOption) {
  const auto variants = variants_of(GetParam());
  for (const std::string& norm : norm_names()) {
    const Settings settings = norm_settings(norm);
    if (std::find(variants.begin(), variants.end(), settings) == variants.end()) continue;
    const auto model = tiny_model(GetParam(), settings);
    EXPECT_EQ(has_norms(*model), norm != "none") << norm;
    EXPECT_EQ(model->has_batch_statistics(), norm == "batch") << norm;
  }
}

TEST_P(ModelContract, SeedDecidesTheStartAloneAndDtypeDoesNot) {
  const auto first = tiny_model(GetParam(), {}, 1), again = tiny_model(GetParam(), {}, 1),
             other = tiny_model(GetParam(), {}, 2);
  const auto single = tiny_model(GetParam(), {}, 1, at::kFloat);
  bool differs = false;
  for (size_t i = 0; i < first->parameter_table().size(); ++i) {
    EXPECT_TRUE(at::equal(leaves(*first)[i], leaves(*again)[i]));
    EXPECT_TRUE(at::equal(leaves(*first)[i], leaves(*single)[i].to(at::kDouble)));
    differs = differs || !at::equal(leaves(*first)[i], leaves(*other)[i]);
  }
  EXPECT_TRUE(differs);
}

// Constants of the function are as exact as the type that it is moved to: weights alone keep float32's
// rounding, which initial ones have in every type.
TEST_P(ModelContract, MovedToFloat64ItIsTheModelBuiltThere) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 4);
  const auto moved = tiny_model(GetParam(), {}, 1, at::kFloat), built = tiny_model(GetParam());
  for (const auto& model : {moved, built}) model->eval();
  moved->forward(batch.images.is_floating_point() ? batch.images.to(at::kFloat) : batch.images);
  moved->to(at::kDouble);
  EXPECT_TRUE(at::equal(moved->forward(batch.images), built->forward(batch.images)));
}

TEST_P(ModelContract, PreparationRepeatsAndLeavesParametersAlone) {
  const auto model = tiny_model(GetParam()), twin = tiny_model(GetParam(), {}, 2);
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 12);
  const auto start = tiny_model(GetParam());
  model->prepare(batch.images);
  twin->prepare(batch.images);
  for (size_t i = 0; i < leaves(*model).size(); ++i)
    EXPECT_TRUE(at::equal(leaves(*model)[i], leaves(*start)[i])) << model->parameter_table()[i].name;
  bool changed = false;
  for (size_t i = 0; i < model->buffer_table().size(); ++i) {
    const auto& [name, buffer] = model->buffer_table()[i];
    EXPECT_TRUE(at::equal(buffer, twin->buffer_table()[i].second)) << name;
    changed = changed || !at::equal(buffer, start->buffer_table()[i].second);
  }
  EXPECT_EQ(changed, model->images_to_prepare() > 0);
}

TEST_P(ModelContract, ForwardGivesLogitsWhateverTheMemoryFormat) {
  const auto model = at_random_point(GetParam());
  for (int64_t n : {1, 5}) {
    const auto batch = tiny_batch(tiny_input_shape(GetParam()), n);
    const at::Tensor logits = model->forward(batch.images);
    EXPECT_EQ(logits.sizes(), outputs(n, tiny_input_shape(GetParam())));
    EXPECT_TRUE(at::allclose(logits, model->forward(in_another_format(batch.images)), 1e-12, 1e-12));
    const InputShape shape = full_shape(GetParam());
    const auto full = testing::make_test_model(GetParam(), {}, shape, 1, at::kFloat);
    full->eval();
    EXPECT_EQ(full->forward(tiny_batch(shape, n, 1, at::kFloat).images).sizes(), outputs(n, shape));
  }
}

TEST_P(ModelContract, InputIsUnchanged) {
  const auto model = at_random_point(GetParam(), testing::rectified(GetParam()));  // ReLUs act in place
  auto batch = tiny_batch(tiny_input_shape(GetParam()), 3);
  batch.images = in_another_format(batch.images);
  const at::Tensor before = batch.images.clone();
  mean_loss(*model, batch, tiny_loss(GetParam())).backward();
  EXPECT_TRUE(at::equal(batch.images, before));
}

// Norm, norm mode and loss, all against central differences of the loss itself.
TEST_P(ModelContract, GradientEqualsFiniteDifferences) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 6);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    for (NormMode mode : {NormMode::running, NormMode::folded, NormMode::ghost_batch}) {
      for (LossKind loss : losses_of(GetParam())) {
        const auto model = at_random_point(GetParam(), settings);
        model->set_norm_mode(mode, 3);
        const auto parameters = leaves(*model);
        const auto gradient = torch::autograd::grad({mean_loss(*model, batch, loss)}, parameters);
        const auto direction = random_direction(parameters, 4);
        const double expected = dot(gradient, direction).item<double>();
        const double h = 1e-5;
        move_along(parameters, direction, h);
        const double above = mean_loss(*model, batch, loss).item<double>();
        move_along(parameters, direction, -2 * h);
        const double below = mean_loss(*model, batch, loss).item<double>();
        // Truncation h^2/6 f''' = 1.7e-11 f''' with f''' up to some thousands behind a norm; rounding 1e-16/h
        // = 1e-11.
        EXPECT_NEAR((above - below) / (2 * h), expected, 1e-7 * (1 + std::abs(expected)));
        EXPECT_GT(std::abs(expected), 1e-4);  // a gradient of zero would test nothing
      }
    }
  }
}

TEST_P(ModelContract, HessianVectorProductEqualsDifferencesOfTheGradient) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 6);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    for (NormMode mode : {NormMode::running, NormMode::folded, NormMode::ghost_batch}) {
      const auto model = at_random_point(GetParam(), settings);
      model->set_norm_mode(mode, 3);
      const auto parameters = leaves(*model);
      const auto v = random_direction(parameters, 4), u = random_direction(parameters, 5);
      const auto gradient = torch::autograd::grad({mean_loss(*model, batch, tiny_loss(GetParam()))},
                                                  parameters, {}, true, true);
      const auto hv = torch::autograd::grad({dot(gradient, v)}, parameters, {}, std::nullopt, false,
                                            /*allow_unused=*/true);
      double expected = 0;
      for (size_t i = 0; i < hv.size(); ++i) {
        if (hv[i].defined()) expected += (hv[i] * u[i]).sum().item<double>();
      }
      const double h = 1e-5;
      move_along(parameters, v, h);
      const double above =
          dot(torch::autograd::grad({mean_loss(*model, batch, tiny_loss(GetParam()))}, parameters), u)
              .item<double>();
      move_along(parameters, v, -2 * h);
      const double below =
          dot(torch::autograd::grad({mean_loss(*model, batch, tiny_loss(GetParam()))}, parameters), u)
              .item<double>();
      // As for the gradient, one derivative higher.
      EXPECT_NEAR((above - below) / (2 * h), expected, 1e-6 * (1 + std::abs(expected)));
      EXPECT_GT(std::abs(expected), 1e-6);
    }
  }
}

/// In NormMode::running, with statistics that are not 0 and 1.
std::shared_ptr<Model> with_statistics_of(const testing::TinyBatch& batch, const std::string& name,
                                          const Settings& settings) {
  const auto model = at_random_point(name, settings);
  model->set_norm_mode(NormMode::accumulate, 3);
  model->forward(batch.images);
  model->set_norm_mode(NormMode::running);
  return model;
}

TEST_P(ModelContract, EvalPredictionDoesNotDependOnTheRestOfTheBatch) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 6);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    at::NoGradGuard no_grad;
    const auto model = with_statistics_of(batch, GetParam(), settings);
    const at::Tensor together = model->forward(batch.images);
    const at::Tensor alone = model->forward(batch.images.narrow(0, 2, 1));
    EXPECT_TRUE(at::allclose(together.narrow(0, 2, 1), alone, 1e-12, 1e-12));
  }
}

TEST_P(ModelContract, FoldedNormsAreTheSameFunction) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 6);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    at::NoGradGuard no_grad;
    const auto model = with_statistics_of(batch, GetParam(), settings);
    const at::Tensor separate = model->forward(batch.images);
    model->set_norm_mode(NormMode::folded);
    // float64, some tens of products deep.
    EXPECT_TRUE(at::allclose(model->forward(batch.images), separate, 1e-11, 1e-11));
  }
}

TEST_P(ModelContract, GhostBatchesDoNotDependOnHowManyACallHolds) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 8);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    const auto model = at_random_point(GetParam(), settings);
    model->set_norm_mode(NormMode::ghost_batch, 3);
    const at::Tensor one_call = model->forward(batch.images);  // 3 + 3 + 2
    const at::Tensor two_calls =
        at::cat({model->forward(batch.images.narrow(0, 0, 6)), model->forward(batch.images.narrow(0, 6, 2))});
    EXPECT_TRUE(at::allclose(one_call, two_calls, 1e-12, 1e-12));
    model->set_norm_mode(NormMode::ghost_batch);
    EXPECT_NE(at::allclose(one_call, model->forward(batch.images), 1e-3, 1e-3),
              model->has_batch_statistics());
  }
}

TEST_P(ModelContract, CancelledBiasesAreThoseThatChangeNothingWithTheStatisticsOfABatch) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 8);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    const auto model = at_random_point(GetParam(), settings);
    const at::NoGradGuard no_grad;
    const auto outputs = [&](NormMode mode) {
      model->set_norm_mode(mode);
      return model->forward(batch.images);
    };
    const at::Tensor in_training = outputs(NormMode::ghost_batch), frozen = outputs(NormMode::running);
    for (const ParameterInfo& p : model->parameter_table()) {
      if (p.kind != ParameterKind::bias || !model->has_batch_statistics()) {
        EXPECT_FALSE(model->is_cancelled(p.tensor)) << p.name;
        continue;
      }
      const at::Tensor before = p.tensor.detach().clone();
      p.tensor.add_(0.3);
      // Means of float64 numbers near 1; a norm's eps = 1e-5 doesn't enter.
      EXPECT_EQ(at::allclose(outputs(NormMode::ghost_batch), in_training, 1e-10, 1e-10),
                model->is_cancelled(p.tensor))
          << p.name;
      EXPECT_FALSE(at::allclose(outputs(NormMode::running), frozen, 1e-6, 1e-6)) << p.name;
      p.tensor.copy_(before);
    }
  }
}

TEST_P(ModelContract, DropoutActsInTrainingAloneAndRepeatsAtItsPlace) {
  const auto batch = tiny_batch(tiny_input_shape(GetParam()), 4);
  for (const Settings& settings : variants_of(GetParam())) {
    SCOPED_TRACE(fmt::format("{}", settings));
    const auto model = tiny_model(GetParam(), settings);
    testing::expect_dropout_at_its_place(*model, batch.images);
  }
}

// A sweep plans by them without building a network.
TEST_P(ModelContract, TraitsAreThoseOfTheNetworkThatIsBuilt) {
  const ModelEntry& entry = find_entry(model_registry(), GetParam(), "model");
  std::vector<Settings> all = variants_of(GetParam());
  all.push_back({});  // the defaults
  for (const Settings& settings : all) {
    const auto model = tiny_model(GetParam(), settings);
    const ModelTraits traits = entry.traits(*testing::test_options(GetParam(), settings));
    EXPECT_EQ(traits.batch_statistics, model->has_batch_statistics()) << fmt::format("{}", settings);
    EXPECT_EQ(traits.dropout, model->has_dropout()) << fmt::format("{}", settings);
  }
}

}  // namespace
}  // namespace basin
